"""Make one attempt to tell the receiver."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from notify_queue.delivery.lease import Lease
from notify_queue.domain.retry import Backoff
from notify_queue.domain.signature import sign
from notify_queue.domain.webhook_event import Answer, Dispatch, Posted, body_of, judge_answer


@dataclass(frozen=True, slots=True)
class SendEvent:
    """The step. ``secrets`` sign what is sent; without one nothing is signed."""

    post: Callable[[bytes, Mapping[str, str]], Answer]
    secrets: Sequence[bytes]
    lease_s: int
    max_attempts: int
    backoff: Backoff
    random: Callable[[], float]

    def __call__(self, dispatch: Dispatch, lease: Lease) -> Posted:
        """Sign and post the event, and judge the answer."""
        body = body_of(dispatch.event)
        answer = self.post(body, self._headers(dispatch, lease, body))
        verdict = judge_answer(
            answer, dispatch.spent, self.max_attempts, self.backoff, self.random()
        )
        return Posted(dispatch, answer, verdict)

    def _headers(self, dispatch: Dispatch, lease: Lease, body: bytes) -> dict[str, str]:
        event_id = str(dispatch.event.event_id)
        headers = {"X-Webhook-Event-Id": event_id}
        if self.secrets:
            # By the database's clock: a receiver refuses what is minutes old, and this process's
            # own clock may be off by that.
            elapsed_s = self.lease_s - lease.left_ms / 1000
            timestamp = int(dispatch.taken_at.timestamp() + elapsed_s)
            headers["webhook-id"] = event_id
            headers["webhook-timestamp"] = str(timestamp)
            headers["webhook-signature"] = sign(event_id, timestamp, body, self.secrets)
        return headers
