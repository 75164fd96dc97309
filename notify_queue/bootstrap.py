"""The composition root: settings in, engines, use cases and worker steps out."""

import math
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Final
from uuid import uuid4

from notify_queue.delivery.mock_provider import MockProvider
from notify_queue.delivery.webhook_post import WebhookPost
from notify_queue.domain.job import Channel
from notify_queue.domain.rate_limit import RateLimit
from notify_queue.domain.retry import Backoff
from notify_queue.maintenance.limits import TidyLimits
from notify_queue.maintenance.recover import RecoverExpired
from notify_queue.maintenance.seed import SeedExamples
from notify_queue.metrics.health import CheckHealth
from notify_queue.notifications.cancel import CancelNotification
from notify_queue.notifications.read import ListNotifications, ReadNotification
from notify_queue.notifications.redrive import RedriveNotification, RedriveNotifications
from notify_queue.notifications.schedule import ScheduleNotification
from notify_queue.persistence import schema
from notify_queue.persistence.engine import Engine, direct_engine, pooled_engine
from notify_queue.persistence.hints import HintListener, HintSender
from notify_queue.persistence.identity import new_id
from notify_queue.persistence.unit_of_work import unit_of_work_factory
from notify_queue.settings import Settings
from notify_queue.webhooks.dispatch import Dispatcher
from notify_queue.webhooks.mock_receiver import ReceiveMockWebhook
from notify_queue.webhooks.record import RecordPosted
from notify_queue.webhooks.revive import ReviveEvents
from notify_queue.webhooks.send import SendEvent
from notify_queue.webhooks.take import TakeDueEvents
from notify_queue.worker.claim import ClaimDueJobs
from notify_queue.worker.complete import CompletionBuffer
from notify_queue.worker.deliver import DeliverJob
from notify_queue.worker.pipeline import Pipeline

# A worker keeps one connection of its budget for LISTEN; with a budget of one it polls alone.
_LISTEN_CONNECTIONS: Final = 1
_WORKERS: Final = {"worker", "all"}


@dataclass(frozen=True, slots=True)
class Wakes:
    """What starts a pass of a worker's loops early."""

    poll: Callable[[], None]
    flush: Callable[[], None]
    webhooks: Callable[[], None]


@dataclass(frozen=True, slots=True)
class WorkerParts:
    """What a worker process runs.

    ``hints`` is None where only polling is possible, ``webhooks`` where nobody is to be told.
    """

    pipeline: Pipeline
    completions: CompletionBuffer
    recover: RecoverExpired
    tidy_limits: TidyLimits
    webhooks: Dispatcher | None
    hints: HintListener | None


class Container:
    """Builds what a process of ``role`` needs, once, when it is first asked for."""

    def __init__(self, settings: Settings, role: str) -> None:
        """Connect to nothing yet."""
        self._settings = settings
        self._role = role
        self._listens = role in _WORKERS and settings.database_pool_max > _LISTEN_CONNECTIONS
        self._unit_of_work = unit_of_work_factory(self._engine)

    @cached_property
    def schedule(self) -> ScheduleNotification:
        """Take notifications in."""
        return ScheduleNotification(
            unit_of_work=self._unit_of_work,
            new_id=new_id,
            wall_clock=_wall_clock,
            hint=self._hint,
            max_attempts=self._max_attempts,
        )

    @cached_property
    def read(self) -> ReadNotification:
        """Look at one notification."""
        return ReadNotification(self._unit_of_work)

    @cached_property
    def list_page(self) -> ListNotifications:
        """Look at a page of notifications."""
        return ListNotifications(self._unit_of_work)

    @cached_property
    def cancel(self) -> CancelNotification:
        """Cancel one notification."""
        return CancelNotification(self._unit_of_work)

    @cached_property
    def redrive_one(self) -> RedriveNotification:
        """Put one ended notification back to work."""
        return RedriveNotification(self._unit_of_work, self._max_attempts, self._hint)

    @cached_property
    def redrive_many(self) -> RedriveNotifications:
        """Put many back, oldest first."""
        return RedriveNotifications(self._unit_of_work, self._max_attempts, self._hint)

    @cached_property
    def recover(self) -> RecoverExpired:
        """Take expired claims back."""
        return RecoverExpired(
            self._unit_of_work,
            self._settings.worker_id,
            self._settings.job_visibility_timeout_seconds,
            limited=self._rate_limit is not None,
        )

    @cached_property
    def seed(self) -> SeedExamples:
        """Put the example jobs in."""
        return SeedExamples(self._unit_of_work, new_id)

    @cached_property
    def revive_events(self) -> ReviveEvents:
        """Put given-up webhook events back to work."""
        return ReviveEvents(self._unit_of_work)

    @cached_property
    def mock_receiver(self) -> ReceiveMockWebhook | None:
        """Receive webhooks to look at, if that is switched on."""
        if not self._settings.webhook_mock_receiver:
            return None
        return ReceiveMockWebhook(self._unit_of_work, self._settings.webhook_secret, _wall_clock)

    @cached_property
    def health(self) -> CheckHealth:
        """Ask the database for a sign of life."""
        return CheckHealth(self._unit_of_work)

    def worker(self, wakes: Wakes) -> WorkerParts:
        """Build the steps of a worker."""
        settings = self._settings
        completions = CompletionBuffer(
            self._unit_of_work,
            settings.worker_id,
            limited=self._rate_limit is not None,
            wake=wakes.flush,
            wake_poll=wakes.poll,
            wake_webhooks=wakes.webhooks,
        )
        pipeline = Pipeline(
            self._claim,
            self._deliver,
            completions,
            worker_id=settings.worker_id,
            concurrency=settings.worker_concurrency,
            batch_size=settings.worker_batch_size,
            wake=wakes.poll,
        )
        return WorkerParts(
            pipeline=pipeline,
            completions=completions,
            recover=self.recover,
            tidy_limits=self._tidy_limits,
            webhooks=self._webhooks(settings.webhook_url, wakes.webhooks),
            hints=HintListener(self._direct_engine) if self._listens else None,
        )

    def require_current_schema(self) -> None:
        """Refuse a database older than the code.

        Raises:
            OutdatedSchemaError: with the command that mends it.
        """
        schema.require_current(self._engine)

    def migrate(self) -> str | None:
        """Bring the schema up to date and return its version."""
        return schema.upgrade(self._direct_engine)

    def close(self) -> None:
        """Close the pooled connections."""
        self._engine.dispose()

    @cached_property
    def _hint(self) -> HintSender:
        return HintSender(self._engine, self._settings.worker_poll_interval_ms / 1000)

    @property
    def _rate_limit(self) -> RateLimit | None:
        """None when it is switched off, and then no statement of it is made."""
        most = self._settings.rate_limit_max_notifications
        window = timedelta(seconds=self._settings.rate_limit_window_seconds)
        return RateLimit(most, window) if most else None

    @property
    def _max_attempts(self) -> int:
        return self._settings.max_retries + 1

    @cached_property
    def _engine(self) -> Engine:
        budget = self._settings.database_pool_max
        return pooled_engine(
            self._settings.database_url,
            self._application_name,
            budget - _LISTEN_CONNECTIONS if self._listens else budget,
        )

    @cached_property
    def _direct_engine(self) -> Engine:
        return direct_engine(self._settings.database_direct_url, self._application_name)

    @property
    def _application_name(self) -> str:
        """What an operator reads in pg_stat_activity."""
        return f"notify-queue {self._role}"

    @property
    def _claim(self) -> ClaimDueJobs:
        return ClaimDueJobs(
            unit_of_work=self._unit_of_work,
            worker_id=self._settings.worker_id,
            visibility_timeout_s=self._settings.job_visibility_timeout_seconds,
            aging_share=self._settings.priority_aging_share,
            aging_after=timedelta(seconds=self._settings.priority_aging_seconds),
            new_token=uuid4,
            rate_limit=self._rate_limit,
        )

    @property
    def _tidy_limits(self) -> TidyLimits:
        return TidyLimits(
            self._unit_of_work,
            self._settings.worker_id,
            self._rate_limit,
            timedelta(seconds=self._settings.rate_limit_window_seconds),
        )

    @property
    def _deliver(self) -> DeliverJob:
        settings = self._settings
        mock = MockProvider(
            self._unit_of_work,
            settings.mock_failure_rate,
            settings.mock_latency_ms,
            random.random,
        )
        return DeliverJob(
            providers=dict.fromkeys(Channel, mock),
            timeout_ms=settings.provider_timeout_ms,
            backoff=self._backoff,
            worker_id=settings.worker_id,
            random=random.random,
        )

    def _webhooks(self, url: str | None, wake: Callable[[], None]) -> Dispatcher | None:
        if url is None:
            return None
        settings = self._settings
        lease_s = _lease_s(settings.webhook_timeout_ms)
        post = WebhookPost(
            url,
            most=settings.webhook_concurrency,
            timeout_ms=settings.webhook_timeout_ms,
            allow_private=settings.webhook_allow_private,
            wall_clock=_wall_clock,
        )
        send = SendEvent(
            post=post,
            secrets=settings.webhook_secret,
            lease_s=lease_s,
            max_attempts=settings.webhook_max_attempts,
            backoff=self._backoff,
            random=random.random,
        )
        return Dispatcher(
            TakeDueEvents(self._unit_of_work, lease_s, settings.webhook_max_attempts),
            send,
            RecordPosted(self._unit_of_work),
            worker_id=settings.worker_id,
            concurrency=settings.webhook_concurrency,
            wake=wake,
        )

    @property
    def _backoff(self) -> Backoff:
        return Backoff(self._settings.base_retry_delay_ms, self._settings.max_retry_delay_ms)


def _lease_s(webhook_timeout_ms: int) -> int:
    """The lease of an event: a POST takes half of it at most, and recording the rest."""
    return math.ceil(2 * webhook_timeout_ms / 1000)


def _wall_clock() -> datetime:
    """For what strangers say of time: what is due is decided by the database's clock."""
    return datetime.fromtimestamp(time.time(), UTC)
