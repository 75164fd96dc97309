"""House rules that neither the linter nor the import contracts can say.

Each rule is a function from sources to problems, so that it can be shown a small offence as well.
"""

import ast
import math
import re
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest

from notify_queue.observability import events

ROOT = Path(__file__).parents[2]
GREEN = "notify_queue.runtime.green"
# Where a commit may be written out, and what each is for.
COMMITTERS = {
    "notify_queue/persistence/unit_of_work.py": "the commit of the product",
    "notify_queue/persistence/hints.py": "NOTIFY takes effect with it",
    "notify_queue/persistence/schema.py": "leaves autocommit before the migrations",
}
DOCUMENTED = ("domain", "worker", "persistence", "notifications", "delivery", "runtime")
# What the files that start a process may know of the product, besides the patch.
DOORS = {
    "wsgi.py": {"notify_queue.cli.web"},
    "gunicorn.conf.py": {"notify_queue.bootstrap", "notify_queue.cli.startup"},
    "notify_queue/__main__.py": {"notify_queue.cli", "notify_queue.cli.startup"},
    # A script knows how scripts run, its use case, and the values that go in and out of it.
    "scripts/seed.py": {"notify_queue.cli"},
    "scripts/recover.py": {
        "notify_queue.cli",
        "notify_queue.cli.batches",
        "notify_queue.maintenance.recover",
    },
    "scripts/redrive.py": {
        "notify_queue.cli",
        "notify_queue.cli.batches",
        "notify_queue.domain.error_text",
        "notify_queue.domain.lifecycle",
        "notify_queue.domain.page",
        "notify_queue.domain.redrive",
        "notify_queue.notifications.redrive",
        "notify_queue.webhooks.revive",
    },
}
# What a script needs to find the product, before it can import anything of it.
FINDING = {"sys", "pathlib"}


@dataclass(frozen=True)
class Source:
    """One Python file; ``path`` is relative to the project."""

    path: str
    text: str

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """Everything in it."""
        return list(ast.walk(self.tree))

    @cached_property
    def tree(self) -> ast.Module:
        """The module."""
        return ast.parse(self.text)

    def problem(self, node: ast.AST, what: str) -> str:
        """Say where something is wrong."""
        return f"{self.path}:{getattr(node, 'lineno', 1)}: {what}"


Rule = Callable[[Sequence[Source]], Iterable[str]]
Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def of(*patterns: str) -> list[Source]:
    """Read the project's files that match."""
    found = sorted({path for pattern in patterns for path in ROOT.glob(pattern)})
    return [Source(str(path.relative_to(ROOT)), path.read_text()) for path in found]


PRODUCT = of("notify_queue/**/*.py")
AROUND = of("*.py", "migrations/**/*.py", "scripts/**/*.py", "benchmarks/**/*.py")
TESTS = of("tests/**/*.py")


def only_a_unit_commits(sources: Sequence[Source]) -> Iterator[str]:
    """Use cases say ``unit.commit()``; nobody else but persistence ends a transaction."""
    for source in sources:
        for node in source.nodes:
            match node:
                case ast.Call(func=ast.Attribute(value=ast.Name("unit"), attr="commit")):
                    pass
                case ast.Call(func=ast.Attribute(attr="commit")) if source.path not in COMMITTERS:
                    yield source.problem(node, "a commit")


def sessions_stay_in_persistence(sources: Sequence[Source]) -> Iterator[str]:
    """No name, argument, attribute or import speaks of a session."""
    for source in sources:
        if source.path.startswith("notify_queue/persistence/"):
            continue
        for node in source.nodes:
            names = [getattr(node, field, None) for field in ("id", "attr", "arg", "name")]
            if any(re.match(r"_*session", name or "", re.IGNORECASE) for name in names):
                yield source.problem(node, "a session")


def imports_stand_at_the_top(sources: Sequence[Source]) -> Iterator[str]:
    """An import within a function hides a dependency, and usually a cycle."""
    for source in sources:
        for node in _functions(source):
            for inner in ast.walk(node):
                if isinstance(inner, ast.Import | ast.ImportFrom):
                    yield source.problem(inner, "an import within a function")


def nobody_reads_a_wall_clock_through_datetime(sources: Sequence[Source]) -> Iterator[str]:
    """``func.now()`` is the database's and fine."""
    clocks = {f"{kind}.{name}" for kind in ("datetime", "date") for name in ("now", "today")}
    clocks.add("datetime.utcnow")
    for source in sources:
        for node in source.nodes:
            if isinstance(node, ast.Attribute):
                name = ".".join(ast.unparse(node).split(".")[-2:])
                if name in clocks:
                    yield source.problem(node, name)


def the_public_side_is_documented(sources: Sequence[Source]) -> Iterator[str]:
    """Every module, and the public classes, functions and methods of the folders that matter."""
    for source in sources:
        if ast.get_docstring(source.tree) is None:
            yield source.problem(source.tree, "a module without a docstring")
        if source.path.split("/")[1] in DOCUMENTED:
            yield from (
                source.problem(node, f"{node.name} without a docstring")
                for node in _public(source.tree)
                if ast.get_docstring(node) is None
            )


def events_are_a_vocabulary(sources: Sequence[Source]) -> Iterator[str]:
    """What is logged is listed, what is listed is logged, and nothing is logged by its text."""
    texts = {name: value for name, value in vars(events).items() if isinstance(value, str)}
    listed = {name for name, text in texts.items() if text in events.FIELDS}
    used = set()
    for source in sources:
        for node in source.nodes:
            match node:
                case ast.Attribute(value=ast.Name("events"), attr=name):
                    used.add(name)
                    if name not in listed:
                        yield source.problem(node, f"no such event as {name}")
                case ast.Call(
                    func=ast.Attribute(value=ast.Name("_log" | "_LOG")),
                    args=[ast.Constant() | ast.JoinedStr() | ast.BinOp(), *_],
                ):
                    yield source.problem(node, "an event that is not a constant")
    yield from (f"never logged: {name}" for name in sorted(listed - used))


def nobody_sleeps_and_hopes(sources: Sequence[Source]) -> Iterator[str]:
    """One place sleeps, and it looks at a condition each time."""
    for source in sources:
        for node in source.nodes:
            match node:
                case ast.Attribute(value=ast.Name("time"), attr="sleep"):
                    slept = True
                case ast.ImportFrom(module="time", names=names):
                    slept = any(each.name == "sleep" for each in names)
                case _:
                    slept = False
            if slept and source.path != "tests/support/waiting.py":
                yield source.problem(node, "time.sleep")


def exceptions_give_their_reason(sources: Sequence[Source]) -> Iterator[str]:
    """Whoever switches a check off says why on the same line."""
    silenced = re.compile(r"# (noqa|type: ignore)\b(?P<rest>.*)")
    reasoned = re.compile(r": [A-Z0-9, ]+ - \S.*|\[[a-z, -]+\]  ?# \S.*")
    for source in sources:
        for number, line in enumerate(source.text.splitlines(), 1):
            found = silenced.search(line)
            if found and not reasoned.fullmatch(found["rest"]):
                yield f"{source.path}:{number}: {found[0]} without a reason"


def doors_open_on_little(sources: Sequence[Source]) -> Iterator[str]:
    """What starts a process patches first, and knows little more than the command line."""
    for source in sources:
        if source.path in DOORS:
            imported = _imported(source)
            patched = imported.index(GREEN) if GREEN in imported else len(imported)
            finding = FINDING if source.path.startswith("scripts/") else set()
            early = set(imported[:patched]) - finding
            ours = {name for name in imported[patched + 1 :] if name.startswith("notify_queue")}
            if patched == len(imported) or early or ours - DOORS[source.path]:
                yield f"{source.path} imports {early} before the patch, then {ours}"


RULES: list[tuple[Rule, list[Source]]] = [
    (only_a_unit_commits, PRODUCT + AROUND),
    (sessions_stay_in_persistence, PRODUCT + AROUND),
    (imports_stand_at_the_top, PRODUCT + AROUND + TESTS),
    (nobody_reads_a_wall_clock_through_datetime, PRODUCT + AROUND + TESTS),
    (the_public_side_is_documented, PRODUCT),
    (events_are_a_vocabulary, PRODUCT),
    (nobody_sleeps_and_hopes, TESTS),
    (exceptions_give_their_reason, PRODUCT + AROUND + TESTS),
    (doors_open_on_little, PRODUCT + AROUND),
]
WORKER = "notify_queue/worker/x.py"
OFFENCES: list[tuple[Rule, str, str]] = [
    (only_a_unit_commits, WORKER, "connection.commit()"),
    (only_a_unit_commits, "notify_queue/persistence/x.py", "self._session.commit()"),
    (sessions_stay_in_persistence, WORKER, "def f(session): ..."),
    (sessions_stay_in_persistence, WORKER, "unit._session"),
    (sessions_stay_in_persistence, WORKER, "from sqlalchemy.orm import Session"),
    (imports_stand_at_the_top, WORKER, "def f():\n    if x:\n        import notify_queue"),
    (imports_stand_at_the_top, WORKER, "async def f():\n    from notify_queue import api"),
    (nobody_reads_a_wall_clock_through_datetime, WORKER, "datetime.now(UTC)"),
    (nobody_reads_a_wall_clock_through_datetime, WORKER, "dt.datetime.utcnow()"),
    (nobody_reads_a_wall_clock_through_datetime, WORKER, "clock = date.today"),
    (the_public_side_is_documented, "notify_queue/api/x.py", "x = 1"),
    (the_public_side_is_documented, WORKER, '"""X."""\nclass A: ...'),
    (the_public_side_is_documented, WORKER, '"""X."""\nclass A:\n    """A."""\n    def f(): ...'),
    (events_are_a_vocabulary, WORKER, "_log.info(events.JOB_VANISHED)"),
    (events_are_a_vocabulary, WORKER, '_log.info("job.sent")'),
    (events_are_a_vocabulary, WORKER, "_LOG.info(f'{x}')"),
    (nobody_sleeps_and_hopes, "tests/x.py", "time.sleep(1)"),
    (nobody_sleeps_and_hopes, "tests/x.py", "from time import monotonic, sleep"),
    (exceptions_give_their_reason, WORKER, "x = 1  # " + "noqa: E501"),
    (exceptions_give_their_reason, WORKER, "x = 1  # " + "noqa"),
    (exceptions_give_their_reason, WORKER, "x = 1  # " + "type: ignore[misc]"),
    (doors_open_on_little, "wsgi.py", f"from notify_queue.cli import web\nimport {GREEN}"),
    (doors_open_on_little, "wsgi.py", f"import {GREEN}\nimport notify_queue.bootstrap"),
    (doors_open_on_little, "notify_queue/__main__.py", f"import argparse\nimport {GREEN}"),
    (doors_open_on_little, "scripts/seed.py", f"import sys\nimport json\nimport {GREEN}"),
    (doors_open_on_little, "scripts/seed.py", f"import {GREEN}\nimport notify_queue.bootstrap"),
    (doors_open_on_little, "scripts/seed.py", "import notify_queue.cli"),
]


@pytest.mark.parametrize(("rule", "sources"), RULES, ids=[rule.__name__ for rule, _ in RULES])
def test_the_project_keeps_the_rule(rule: Rule, sources: list[Source]) -> None:
    assert sources
    assert list(rule(sources)) == []


@pytest.mark.parametrize(("rule", "path", "text"), OFFENCES)
def test_an_offence_against_the_rule_is_found(rule: Rule, path: str, text: str) -> None:
    innocent = set(rule([Source(path, '"""Nothing."""')]))
    assert set(rule([Source(path, text)])) - innocent


@pytest.mark.parametrize("path", COMMITTERS)
def test_every_exception_to_the_rule_on_commits_is_still_needed(path: str) -> None:
    (source,) = of(path)
    assert ".commit()" in source.text


def test_an_event_that_nobody_logs_is_found() -> None:
    assert "never logged: JOB_SENT" in events_are_a_vocabulary([])


def test_files_and_functions_stay_small() -> None:
    files = {source.path: len(source.text.splitlines()) for source in PRODUCT + AROUND}
    functions = {
        f"{source.path}:{node.name}": (node.end_lineno or 0) - node.lineno + 1
        for source in PRODUCT + AROUND
        for node in _functions(source)
    }
    assert too_large("files", files, median=120, p95=300, largest=400) == []
    assert too_large("functions", functions, median=10, p95=40, largest=60) == []


@pytest.mark.parametrize("sizes", [[1, 1, 61], [11, 11, 11], [1] * 18 + [41, 41]])
def test_sizes_beyond_a_limit_are_found(sizes: list[int]) -> None:
    named = {f"f{number}": size for number, size in enumerate(sizes)}
    assert too_large("functions", named, median=10, p95=40, largest=60)
    assert not too_large("functions", named, median=11, p95=61, largest=61)


def too_large(
    what: str, sizes: dict[str, int], *, median: int, p95: int, largest: int
) -> list[str]:
    """Print the figures in lines and name what exceeds its limit."""
    ordered = sorted(sizes.values())
    middle, high = statistics.median(ordered), ordered[math.ceil(0.95 * len(ordered)) - 1]
    print(f"{len(ordered)} {what}: median {middle}, p95 {high}, max {ordered[-1]}")  # noqa: T201 - pytest shows it on request
    beyond = [f"{name}: {size}" for name, size in sizes.items() if size > largest]
    beyond += [f"median {middle}"] if middle > median else []
    return beyond + ([f"p95 {high}"] if high > p95 else [])


def _functions(source: Source) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [n for n in source.nodes if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]


def _public(parent: ast.Module | ast.ClassDef) -> Iterator[Definition]:
    for node in parent.body:
        if isinstance(node, Definition):
            if node.name.startswith("_"):
                continue
            yield node
            if isinstance(node, ast.ClassDef):
                yield from _public(node)


def _imported(source: Source) -> list[str]:
    names: list[str] = []
    for node in source.tree.body:
        match node:
            case ast.Import(names=found):
                names += [each.name for each in found]
            case ast.ImportFrom(module=str(module)):
                names.append(module)
    return names
