"""A migration that finds a table held says so, and is simply run again."""

from sqlalchemy import text

from notify_queue.persistence.engine import direct_engine
from notify_queue.persistence.schema import upgrade
from tests.support.postgres import Databases, sqlalchemy_url
from tests.support.processes import Processes


def test_a_table_that_somebody_holds_is_no_question_of_the_address(
    databases: Databases, processes: Processes
) -> None:
    url = databases.empty()
    engine = direct_engine(sqlalchemy_url(url), "notify-queue tests")
    upgrade(engine, "0004_sent_jobs")
    with engine.connect() as holder:
        holder.execute(text("BEGIN"))
        holder.execute(text("LOCK TABLE notification_jobs IN ACCESS EXCLUSIVE MODE"))
        held = processes.start("migrate", DATABASE_URL=url)
        assert held.popen.wait(20) == 1
    assert "LockNotAvailable, SQLSTATE 55P03" in held.errors()
    assert "simply run it again" in held.errors()
    assert "DATABASE_URL" not in held.errors()
    assert processes.start("migrate", DATABASE_URL=url).popen.wait(20) == 0
    engine.dispose()
