"""Everything that a process writes to standard output is one JSON object a line."""

from tests.support.jobs import Jobs
from tests.support.load import a_body, post
from tests.support.processes import Processes
from tests.support.waiting import until

_BASE = {"level", "time", "service", "role", "pid", "context", "msg"}


def test_every_line_of_every_process_has_the_base_fields_and_its_request_id(
    processes: Processes, jobs: Jobs
) -> None:
    api = processes.start("api")
    worker = processes.running("worker", MOCK_FAILURE_RATE=0)
    api.wait_until_healthy()
    headers = {"X-Request-ID": "order-4711"}
    assert post(api, a_body(sendAt="2020-01-01T00:00:00Z"), **headers).status_code == 201
    assert post(api, {"broken": True}, **{"X-Request-ID": "order-4712"}).status_code == 400
    until(lambda: jobs.statuses() == {"SENT": 1}, "the job to be sent")

    for process, role in ((api, "api"), (worker, "worker")):
        assert process.stop() == 0
        # From the first line to the last, which tell of the start and of the end.
        for line in process.lines():
            assert line.keys() >= _BASE
            assert (line["service"], line["role"]) == ("notify-queue", role)
            assert isinstance(line["pid"], int)
    ids = {line["requestId"]: line["msg"] for line in api.lines() if "requestId" in line}
    assert ids == {
        "order-4711": "POST /notifications 201",
        "order-4712": "POST /notifications 400",
    }
    assert [line["msg"] for line in worker.lines()] == [
        "app.started",
        "worker.started",
        "job.sent",
        "worker.drained",
    ]


def test_a_quiet_level_leaves_only_what_went_wrong(processes: Processes, jobs: Jobs) -> None:
    worker = processes.running("worker", LOG_LEVEL="warn", MOCK_FAILURE_RATE=0)
    jobs.add(recipient="invalid@example.com")
    until(lambda: jobs.statuses() == {"FAILED": 1}, "the job to fail")
    assert worker.stop() == 0
    assert [line["msg"] for line in worker.lines()] == ["job.fail"]
