"""Rows that are fed to a statement as arrays: a batch of one and one of 500 are the same text."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from sqlalchemy import ARRAY, TableValuedAlias, Uuid, any_, bindparam, column, func
from sqlalchemy.sql.elements import CollectionAggregate

# For an insert whose arrays are given at the execution: what is given there is no row of its own.
PLAIN_INSERT: Final = MappingProxyType({"dml_strategy": "raw"})


def rows_of(
    types: Mapping[str, Any], values: Mapping[str, list[Any]] | None = None
) -> TableValuedAlias:
    """Turn columns into rows under the name ``given``.

    Without ``values`` those of a column ``x`` are given at the execution, as ``given_x``: such a
    statement need be built only once.
    """
    arrays = [
        bindparam(f"given_{name}", type_=ARRAY(kind))
        if values is None
        else bindparam(f"given_{name}", values[name], ARRAY(kind))
        for name, kind in types.items()
    ]
    return (
        func.unnest(*arrays)
        .table_valued(*(column(name, kind) for name, kind in types.items()))
        .render_derived("given")
    )


def listed_jobs() -> CollectionAggregate[Any]:
    """Any of the ids that are given at the execution, as ``job_ids``."""
    return any_(bindparam("job_ids", type_=ARRAY(Uuid)))
