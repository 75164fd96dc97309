"""How a delivery attempt can end, as values: exceptions are for surprises."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Delivered:
    """The provider has accepted the notification, now or under the same key before."""

    message_id: str
    duplicate: bool = False


@dataclass(frozen=True, slots=True)
class Refused:
    """The provider will never accept this notification; trying again cannot help."""

    error: str


@dataclass(frozen=True, slots=True)
class Failed:
    """The attempt failed, or its end is unknown; trying again under the same key may help."""

    error: str


@dataclass(frozen=True, slots=True)
class NotSent:
    """The provider was not called at all: nothing was tried."""


Outcome = Delivered | Refused | Failed | NotSent
