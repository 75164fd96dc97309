"""A hint reaches whoever listens; losing one is nobody's loss."""

from collections.abc import Iterator

import pytest
from sqlalchemy import Engine

from notify_queue.persistence.engine import direct_engine
from notify_queue.persistence.hints import HintListener, HintSender, send_hint
from tests.support.jobs import Jobs
from tests.support.postgres import sqlalchemy_url


@pytest.fixture
def listener(database_url: str) -> Iterator[HintListener]:
    engine = direct_engine(sqlalchemy_url(database_url), "listener")
    listening = HintListener(engine)
    assert listening.wait(0), "what came before the connection may have been missed"
    assert not listening.wait(0)
    yield listening
    listening.close()


def test_a_hint_wakes_a_listener(listener: HintListener, engine: Engine) -> None:
    send_hint(engine)
    assert listener.wait(5)
    assert not listener.wait(0)


def test_a_sender_hints_at_jobs_that_are_due_soon(listener: HintListener, engine: Engine) -> None:
    send = HintSender(engine, horizon_s=1)
    send(0.5)
    assert listener.wait(5)


def test_a_sender_says_nothing_of_jobs_far_off(listener: HintListener, engine: Engine) -> None:
    send = HintSender(engine, horizon_s=1)
    send(1.5)
    assert send._thread is None
    assert not listener.wait(0)


def test_many_hints_at_once_are_few_notifications(listener: HintListener, engine: Engine) -> None:
    send = HintSender(engine, horizon_s=1)
    for _ in range(1000):
        send(0)
    assert listener.wait(5)
    heard = 1
    while listener.wait(0.1):
        heard += 1
    assert heard < 100


def test_a_listener_whose_connection_was_cut_connects_anew(
    listener: HintListener, engine: Engine, jobs: Jobs
) -> None:
    jobs.one(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'listener'"
    )
    with pytest.raises(Exception, match="terminat"):
        while not listener.wait(5):
            pass
    assert listener.wait(0), "what came in between may have been missed"
    send_hint(engine)
    assert listener.wait(5)
    assert not listener.wait(0)


def test_a_sender_outlives_a_database_that_refuses(database_url: str) -> None:
    """The request that asked for the hint has been answered; nothing may come of it."""
    broken = direct_engine(
        sqlalchemy_url(database_url).rsplit("/", 1)[0] + "/no_such_database", "nowhere"
    )
    send = HintSender(broken, horizon_s=1)
    send(0)
    assert send._thread is not None
    send._thread.join(0.2)
    assert send._thread.is_alive()
