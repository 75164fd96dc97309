"""A rolling window, slid over what the provider has noted."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from tests.support.recording import Call


def windows(calls: Iterable[Call], width_s: float) -> Iterator[list[Call]]:
    """Yield, for each call, what lies within ``width_s`` from it on, itself included.

    The windows are half-open: what comes exactly ``width_s`` later is outside. No other window
    holds more, because any can be moved on until it begins with a call and loses none by it.
    """
    in_time = sorted(calls)
    times = [call.time for call in in_time]
    for first, time in enumerate(times):
        yield in_time[first : bisect_left(times, time + width_s)]


def notifications(window: Iterable[Call]) -> int:
    """How many different notifications the calls are for."""
    return len({call.key for call in window})


def fullest_windows(
    calls: Iterable[Call], recipients: Mapping[str, str], width_s: float
) -> dict[str, list[Call]]:
    """Find, for each recipient, a window with as many different notifications as any.

    ``recipients`` says whom each key is for.
    """
    by_recipient: dict[str, list[Call]] = defaultdict(list)
    for call in calls:
        by_recipient[recipients[call.key]].append(call)
    return {
        recipient: max(windows(theirs, width_s), key=notifications)
        for recipient, theirs in by_recipient.items()
    }


def told(recipient: str, window: list[Call]) -> str:
    """The window for a reader: seconds since its first call, key and event of each."""
    lines = [
        f"  {call.time - window[0].time:+.6f} s  {call.key}  {call.event} by process {call.pid}"
        for call in window
    ]
    heading = f"{recipient}: {notifications(window)} notifications from {window[0].time:.6f} on"
    return "\n".join([heading, *lines])
