"""Every setting: its name, type, bounds, default and meaning. This is the one place to add one."""

from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Final, Literal, get_args, get_type_hints

from notify_queue.settings.database_url import DatabaseUrl, masked
from notify_queue.settings.declaration import Declaration
from notify_queue.settings.kinds import Flag, Fraction, Label, OneOf, Secrets, Whole
from notify_queue.settings.web_url import WebUrl, origin_of

Environment = Literal["development", "production", "test"]
Role = Literal["api", "worker", "all"]
LogLevel = Literal["fatal", "error", "warn", "info", "debug", "trace", "silent"]

# A longer wait or lease is always a slip of the keyboard, and a day is far below any overflow.
_DAY_SECONDS: Final = 24 * 60 * 60
_DAY_MS: Final = _DAY_SECONDS * 1000


def _word(flag: object) -> str:
    return str(flag).lower()


# No generated repr: it would print passwords.
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Settings:
    """What is in force in this process. Units stand in the names."""

    node_env: Annotated[
        Environment,
        Declaration(
            group="Process",
            kind=OneOf(get_args(Environment)),
            default="development",
            text="Only the log format: readable lines on a terminal in development, else JSON.",
        ),
    ]
    app_role: Annotated[
        Role,
        Declaration(
            group="Process",
            kind=OneOf(get_args(Role)),
            default="all",
            text="What runs when the command line does not say.",
        ),
    ]
    port: Annotated[
        int,
        Declaration(
            group="Process",
            kind=Whole(1, 65535),
            default=3000,
            text="HTTP port. Every role listens; a worker answers only for its own state.",
        ),
    ]
    web_concurrency: Annotated[
        int,
        Declaration(
            group="Process",
            kind=Whole(1, 128),
            default=1,
            text="Web server processes of the API.",
        ),
    ]
    log_level: Annotated[
        LogLevel,
        Declaration(
            group="Process",
            kind=OneOf(get_args(LogLevel)),
            default="info",
            text="Lowest level that is written.",
        ),
    ]
    database_url: Annotated[
        str,
        Declaration(
            group="Database",
            kind=DatabaseUrl(),
            example="postgresql://notify:notify@localhost:5432/notify_queue",
            shown=masked,
            text="The database. Several hosts are separated by commas.",
        ),
    ]
    database_direct_url: Annotated[
        str,
        Declaration(
            group="Database",
            kind=DatabaseUrl(),
            otherwise="`DATABASE_URL`",
            shown=masked,
            text="The same database without a transaction pooler in between, for what needs a"
            " session of its own: LISTEN, migrations and session locks.",
        ),
    ]
    database_pool_max: Annotated[
        int,
        Declaration(
            group="Database",
            kind=Whole(1, 1000),
            default=10,
            text="Most connections one process opens, the one a worker listens on included.",
        ),
    ]
    worker_id: Annotated[
        str,
        Declaration(
            group="Worker",
            kind=Label(128),
            otherwise="a random UUID",
            text="Name of this worker in claims and logs; different for each process.",
        ),
    ]
    worker_concurrency: Annotated[
        int,
        Declaration(
            group="Worker",
            kind=Whole(1, 10_000),
            default=100,
            text="Deliveries running at once in one worker.",
        ),
    ]
    worker_batch_size: Annotated[
        int,
        Declaration(
            group="Worker",
            kind=Whole(1, 10_000),
            default=100,
            text="Most jobs claimed at once.",
        ),
    ]
    worker_poll_interval_ms: Annotated[
        int,
        Declaration(
            group="Worker",
            kind=Whole(10, _DAY_MS),
            default=1000,
            text="Longest sleep between two looks at the queue. The API hints at jobs due within "
            "it, so both need the same value.",
        ),
    ]
    worker_recovery_interval_ms: Annotated[
        int,
        Declaration(
            group="Worker",
            kind=Whole(1000, _DAY_MS),
            default=30_000,
            text="Longest time between two looks for jobs whose lease has ended.",
        ),
    ]
    worker_shutdown_timeout_ms: Annotated[
        int,
        Declaration(
            group="Worker",
            kind=Whole(0, _DAY_MS),
            default=20_000,
            text="Longest wait for running deliveries at shutdown. Keep it some seconds below"
            " the moment at which the platform kills.",
        ),
    ]
    job_visibility_timeout_seconds: Annotated[
        int,
        Declaration(
            group="Worker",
            kind=Whole(1, _DAY_SECONDS),
            default=60,
            text="The lease: after this time without a result a claimed job is taken back. All"
            " workers need the same value.",
        ),
    ]
    priority_aging_seconds: Annotated[
        int,
        Declaration(
            group="Worker",
            kind=Whole(1, _DAY_SECONDS),
            default=300,
            text="How long a job must be overdue to go before jobs of higher priority.",
        ),
    ]
    priority_aging_share: Annotated[
        float,
        Declaration(
            group="Worker",
            kind=Fraction(0, 0.5),
            default=0.1,
            text="Share of a batch kept for such overdue jobs; 0 keeps the order strict.",
        ),
    ]
    provider_timeout_ms: Annotated[
        int,
        Declaration(
            group="Delivery",
            kind=Whole(1, _DAY_MS),
            default=10_000,
            text="Longest time one call to a provider may take.",
        ),
    ]
    max_retries: Annotated[
        int,
        Declaration(
            group="Delivery",
            kind=Whole(1, 1000),
            default=5,
            text="Tries after the first. Fixed for a job when it is scheduled.",
        ),
    ]
    base_retry_delay_ms: Annotated[
        int,
        Declaration(
            group="Delivery",
            kind=Whole(1, _DAY_MS),
            default=1000,
            text="Wait before the first retry; it doubles with each one.",
        ),
    ]
    max_retry_delay_ms: Annotated[
        int,
        Declaration(
            group="Delivery",
            kind=Whole(1, _DAY_MS),
            default=60_000,
            text="Longest wait before a retry.",
        ),
    ]
    rate_limit_max_notifications: Annotated[
        int,
        Declaration(
            group="Rate limit",
            kind=Whole(0, 10_000),
            default=10,
            text="Most different notifications for one recipient within the window, over all"
            " channels; one that is tried again counts once, from its last attempt on. 0 switches"
            " the limit off. All workers need the same value.",
        ),
    ]
    rate_limit_window_seconds: Annotated[
        int,
        Declaration(
            group="Rate limit",
            kind=Whole(1, 31 * _DAY_SECONDS),
            default=3600,
            text="The rolling window. All workers need the same value.",
        ),
    ]
    webhook_url: Annotated[
        str | None,
        Declaration(
            group="Webhooks",
            kind=WebUrl(),
            otherwise="none: events are recorded and wait",
            shown=origin_of,
            text="Where the outcome of every job is posted to.",
        ),
    ]
    webhook_secret: Annotated[
        tuple[bytes, ...],
        Declaration(
            group="Webhooks",
            kind=Secrets(),
            otherwise="none: webhooks are not signed",
            shown=lambda secrets: " ".join("***" for _ in secrets),
            text="Signs every webhook. While receivers change from one secret to the next, give"
            " both.",
        ),
    ]
    webhook_allow_private: Annotated[
        bool,
        Declaration(
            group="Webhooks",
            kind=Flag(),
            default=False,
            shown=_word,
            text="Whether the URL may lead to an address that is not public: this machine, or a"
            " private network.",
        ),
    ]
    webhook_timeout_ms: Annotated[
        int,
        Declaration(
            group="Webhooks",
            kind=Whole(1, _DAY_MS),
            default=5000,
            text="Longest time one POST may take, all together. Twice that, in whole seconds, is"
            " the lease of an event. All workers need the same value.",
        ),
    ]
    webhook_max_attempts: Annotated[
        int,
        Declaration(
            group="Webhooks",
            kind=Whole(1, 1000),
            default=10,
            text="POSTs of one event before it is given up. The waits between them are those"
            " between the tries of a job.",
        ),
    ]
    webhook_poll_interval_ms: Annotated[
        int,
        Declaration(
            group="Webhooks",
            kind=Whole(10, _DAY_MS),
            default=1000,
            text="Longest sleep between two looks at the outbox.",
        ),
    ]
    webhook_concurrency: Annotated[
        int,
        Declaration(
            group="Webhooks",
            kind=Whole(1, 1000),
            default=50,
            text="POSTs on their way at once in one worker; fewer while the receiver is in"
            " trouble.",
        ),
    ]
    webhook_mock_receiver: Annotated[
        bool,
        Declaration(
            group="Webhooks",
            kind=Flag(),
            default=False,
            shown=_word,
            text="Whether the API serves `POST /webhooks/mock`, a receiver to try webhooks with.",
        ),
    ]
    mock_failure_rate: Annotated[
        float,
        Declaration(
            group="Mock provider",
            kind=Fraction(0, 1),
            default=0.2,
            text="Share of calls that fail.",
        ),
    ]
    mock_latency_ms: Annotated[
        int,
        Declaration(
            group="Mock provider",
            kind=Whole(0, _DAY_MS),
            default=50,
            text="How long a call takes.",
        ),
    ]


@cache
def declarations() -> dict[str, Declaration]:
    """Every declaration by the setting's name, in the order above."""
    hints: dict[str, Any] = get_type_hints(Settings, include_extras=True)
    return {name.upper(): hint.__metadata__[0] for name, hint in hints.items()}
