"""How one setting is declared, and the rules that tie settings to each other."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from notify_queue.settings.kinds import Kind
from notify_queue.settings.web_url import leads_to_private

# What a lease must outlast beyond the provider call: an outcome waits in the buffer for a few ms,
# one flush may fail and be tried again a second later, and the lease is counted in whole seconds.
LEASE_MARGIN_MS: Final = 2000


@dataclass(frozen=True, slots=True)
class Declaration:
    """One setting. Its name is the attribute's, in capitals.

    ``default`` is None for a setting that is required, or whose default is made at load and told
    in words by ``otherwise``. ``example`` stands in the example file for one that is required.
    ``shown`` writes the value for a person without what is secret in it.
    """

    group: str
    kind: Kind
    text: str
    default: str | float | bool | None = None
    otherwise: str | None = None
    example: str | None = None
    shown: Callable[[Any], str] = str

    @property
    def required(self) -> bool:
        """Whether a process cannot start without it."""
        return self.default is None and self.otherwise is None


@dataclass(frozen=True, slots=True)
class CrossCheck:
    """A rule over several settings, reported under the first. Its message has no value in it."""

    names: tuple[str, ...]
    holds: Callable[..., bool]
    message: str

    def broken(self, values: Mapping[str, Any]) -> bool:
        """Whether the rule is broken; settings that are invalid themselves break no other rule."""
        if any(name not in values for name in self.names):
            return False
        return not self.holds(*(values[name] for name in self.names))


CROSS_CHECKS: Final = (
    CrossCheck(
        ("BASE_RETRY_DELAY_MS", "MAX_RETRY_DELAY_MS"),
        lambda base, most: base <= most,
        "BASE_RETRY_DELAY_MS must not exceed MAX_RETRY_DELAY_MS",
    ),
    CrossCheck(
        ("PROVIDER_TIMEOUT_MS", "JOB_VISIBILITY_TIMEOUT_SECONDS"),
        lambda timeout_ms, lease_s: timeout_ms + LEASE_MARGIN_MS < lease_s * 1000,
        "PROVIDER_TIMEOUT_MS must be shorter than JOB_VISIBILITY_TIMEOUT_SECONDS"
        f" by more than {LEASE_MARGIN_MS} ms, the time to record an outcome",
    ),
    CrossCheck(
        ("WEBHOOK_URL", "WEBHOOK_ALLOW_PRIVATE"),
        lambda url, allow_private: allow_private or not leads_to_private(url),
        "WEBHOOK_URL must not name a private address unless WEBHOOK_ALLOW_PRIVATE is true",
    ),
    CrossCheck(
        ("MOCK_LATENCY_MS", "PROVIDER_TIMEOUT_MS"),
        lambda latency, timeout: latency < timeout,
        "MOCK_LATENCY_MS must be shorter than PROVIDER_TIMEOUT_MS",
    ),
)
