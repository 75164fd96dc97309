"""What was sent to the database."""

from types import TracebackType
from typing import Any, Self

from sqlalchemy import Engine, event


class Statements:
    """Records every statement of an engine while it is open."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.seen: list[str] = []

    def __enter__(self) -> Self:
        event.listen(self._engine, "before_cursor_execute", self._note)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        event.remove(self._engine, "before_cursor_execute", self._note)

    def _note(self, _connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        self.seen.append(statement)
