"""Every log event by name, and the fields each may carry.

Fields are identifiers, numbers and cleaned error text. A field that is not listed for its event is
not written, so a recipient, a payload or a key cannot slip into a line by way of a new argument.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

APP_STARTED: Final = "app.started"

WORKER_STARTED: Final = "worker.started"
WORKER_DISABLED: Final = "worker.disabled"
WORKER_POLL_FAILED: Final = "worker.poll_failed"
WORKER_FLUSH_FAILED: Final = "worker.flush_failed"
WORKER_LISTEN_FAILED: Final = "worker.listen_failed"
WORKER_RECOVERY_FAILED: Final = "worker.recovery_failed"
WORKER_LIMITS_FAILED: Final = "worker.limits_failed"
WORKER_LEASE_TOO_SHORT: Final = "worker.lease_too_short"
WORKER_DRAINED: Final = "worker.drained"

JOB_SENT: Final = "job.sent"
JOB_RETRY: Final = "job.retry"
JOB_DEAD_LETTER: Final = "job.dead_letter"
JOB_FAIL: Final = "job.fail"
JOB_RATE_LIMITED: Final = "job.rate_limited"
JOB_CLAIM_LOST: Final = "job.claim_lost"
JOB_PROCESSING_ERROR: Final = "job.processing_error"
JOB_RELEASED: Final = "job.released"
JOB_RECOVERED: Final = "job.recovered"
JOB_RECOVERY_FAILED: Final = "job.recovery_failed"
JOBS_UNPARKED: Final = "jobs.unparked"
JOBS_RECOVERED: Final = "jobs.recovered"
JOB_CANCELLED: Final = "job.cancelled"
JOB_REDRIVEN: Final = "job.redriven"
JOBS_REDRIVEN: Final = "jobs.redriven"

WEBHOOK_FAILED: Final = "webhook.failed"
WEBHOOK_RECORD_FAILED: Final = "webhook.record_failed"
WEBHOOK_CLAIM_LOST: Final = "webhook.claim_lost"
WEBHOOK_DISPATCH_FAILED: Final = "webhook.dispatch_failed"
WEBHOOKS_REVIVED: Final = "webhooks.revived"
WEBHOOK_RECEIVED: Final = "webhook.received"
WEBHOOK_DUPLICATE_IGNORED: Final = "webhook.duplicate_ignored"

HTTP_REQUEST: Final = "http.request"
HTTP_ERROR: Final = "http.error"
HTTP_UNREAD: Final = "http.unread"

HEALTH_DOWN: Final = "health.down"

MIGRATE_FAILED: Final = "migrate.failed"
SCHEMA_UNVERIFIED: Final = "schema.unverified"

_ATTEMPT: Final = frozenset({"workerId", "jobId", "attempt"})
_POST: Final = frozenset({"eventId", "jobId", "dispatchAttempt"})
_RECEIPT: Final = frozenset({"eventId", "jobId", "status"})
_WORKER_ERROR: Final = frozenset({"workerId", "error", "stack"})

FIELDS: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        APP_STARTED: frozenset({"port"}),
        WORKER_STARTED: frozenset({"workerId", "concurrency", "batchSize", "pollIntervalMs"}),
        WORKER_DISABLED: frozenset({"reason"}),
        WORKER_POLL_FAILED: _WORKER_ERROR,
        WORKER_FLUSH_FAILED: _WORKER_ERROR,
        WORKER_LISTEN_FAILED: _WORKER_ERROR,
        WORKER_RECOVERY_FAILED: _WORKER_ERROR,
        WORKER_LIMITS_FAILED: _WORKER_ERROR,
        WORKER_LEASE_TOO_SHORT: _ATTEMPT | {"leftMs", "neededMs"},
        WORKER_DRAINED: frozenset(
            {"workerId", "released", "abandoned", "unrecorded", "abandonedWebhooks"}
        ),
        JOB_SENT: _ATTEMPT | {"duplicate", "durationMs"},
        JOB_RETRY: _ATTEMPT | {"error", "retryInMs", "durationMs"},
        # With ``lostBy`` when it was no attempt that ended the job, but its lost lease.
        JOB_DEAD_LETTER: _ATTEMPT | {"error", "durationMs", "lostBy"},
        JOB_FAIL: _ATTEMPT | {"error", "durationMs"},
        JOB_RATE_LIMITED: _ATTEMPT | {"retryAt"},
        JOB_CLAIM_LOST: _ATTEMPT | {"stage", "duplicate", "error", "retryInMs", "durationMs"},
        JOB_PROCESSING_ERROR: _ATTEMPT | {"error", "stack"},
        JOB_RELEASED: _ATTEMPT,
        JOB_RECOVERED: _ATTEMPT | {"error", "lostBy", "reconcile"},
        JOB_RECOVERY_FAILED: _ATTEMPT | {"error", "stack"},
        JOBS_UNPARKED: frozenset({"workerId", "count"}),
        JOBS_RECOVERED: frozenset({"workerId", "requeued", "deadLettered"}),
        JOB_CANCELLED: frozenset({"jobId"}),
        JOB_REDRIVEN: frozenset({"jobId", "redriveCount", "previousError", "reason"}),
        JOBS_REDRIVEN: frozenset({"status", "byRecipient", "retried", "remaining", "reason"}),
        WEBHOOK_FAILED: _POST | {"error", "retryInMs", "gaveUp"},
        WEBHOOK_RECORD_FAILED: _POST | {"delivered", "error", "stack"},
        WEBHOOK_CLAIM_LOST: _POST | {"error", "retryInMs", "gaveUp"},
        WEBHOOK_DISPATCH_FAILED: _WORKER_ERROR,
        WEBHOOKS_REVIVED: frozenset({"revived", "remaining", "reason"}),
        WEBHOOK_RECEIVED: _RECEIPT,
        WEBHOOK_DUPLICATE_IGNORED: _RECEIPT,
        # The line of a request reads "METHOD path status" instead of the event's name.
        HTTP_REQUEST: frozenset({"msg", "req", "res", "responseTime"}),
        HTTP_ERROR: frozenset({"method", "path", "error", "stack"}),
        HTTP_UNREAD: frozenset({"res", "error", "stack"}),
        HEALTH_DOWN: frozenset({"error", "stack"}),
        MIGRATE_FAILED: frozenset({"error", "stack"}),
        SCHEMA_UNVERIFIED: frozenset({"error", "stack"}),
    }
)

# Fields any event may carry: they come from the context, not from the place that logs.
CONTEXT_FIELDS: Final = frozenset({"requestId"})

# The only fields that hold an object, and what may stand in it.
OBJECTS: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        "error": frozenset({"name", "code", "constraint", "causes"}),
        "req": frozenset({"method", "path"}),
        "res": frozenset({"statusCode"}),
    }
)
