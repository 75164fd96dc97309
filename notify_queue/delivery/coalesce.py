"""Many greenlets ask at once; one of them asks the store for all."""

from collections.abc import Callable, Sequence
from typing import Final, Generic, TypeVar, cast

import gevent
from gevent.event import AsyncResult

Q = TypeVar("Q")
A = TypeVar("A")

# As many questions as one statement carries without growing slow.
MOST_AT_ONCE: Final = 500


class Coalesced(Generic[Q, A]):
    """Group commit: calls that arrive while a round is on its way share the next round.

    ``ask`` gets the questions of a round and returns their answers in the same order.
    """

    def __init__(self, ask: Callable[[Sequence[Q]], Sequence[A]]) -> None:
        """Bind the store."""
        self._ask = ask
        self._waiting: list[tuple[Q, AsyncResult[A]]] = []
        self._asking = False

    def __call__(self, question: Q) -> A:
        """Wait for the answer. Raises what ``ask`` raised for the round."""
        answer: AsyncResult[A] = AsyncResult()
        asked = (question, answer)
        self._waiting.append(asked)
        if not self._asking:
            self._asking = True
            gevent.spawn(self._run)
        try:
            return cast("A", answer.get())
        except BaseException:
            # Given up before it was asked: nobody may act on it any more.
            if asked in self._waiting:
                self._waiting.remove(asked)
            raise

    def _run(self) -> None:
        """In a greenlet of its own: a caller that is killed must not take its round along."""
        try:
            while self._waiting:
                round_, self._waiting = self._waiting[:MOST_AT_ONCE], self._waiting[MOST_AT_ONCE:]
                self._settle(round_)
        finally:
            self._asking = False

    def _settle(self, round_: Sequence[tuple[Q, "AsyncResult[A]"]]) -> None:
        try:
            answers = self._ask([question for question, _ in round_])
        except Exception as error:  # noqa: BLE001 - it is raised again in every caller
            for _, waiting in round_:
                waiting.set_exception(error)
        else:
            for (_, waiting), answer in zip(round_, answers, strict=True):
                waiting.set(answer)
