"""Rows that are fed to a statement as arrays: a batch of one and one of 500 are the same text."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import ARRAY, TableValuedAlias, bindparam, column, func


def rows_of(columns: Mapping[str, tuple[Any, list[Any]]]) -> TableValuedAlias:
    """Turn columns, each of a type and its values, into rows under the name ``given``."""
    return (
        func.unnest(
            *(
                bindparam(f"given_{name}", values, ARRAY(kind))
                for name, (kind, values) in columns.items()
            )
        )
        .table_valued(*(column(name, kind) for name, (kind, _) in columns.items()))
        .render_derived("given")
    )
