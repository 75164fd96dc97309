"""A refused command line names the option and repeats nothing that was typed."""

import sys

import pytest

from notify_queue.cli import options

SECRET = "ada@example.com"


def _read(monkeypatch: pytest.MonkeyPatch, *typed: str) -> dict[str, object]:
    parser = options.parser("A script.")
    options.add_batch_options(parser)
    parser.add_argument("--recipient", type=options.text)
    parser.add_argument("--since", type=options.instant)
    parser.add_argument("--status", choices=["FAILED", "DEAD_LETTERED"])
    monkeypatch.setattr(sys, "argv", ["script", *typed])
    return vars(options.read(parser))


def test_what_is_right_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    typed = ["--limit", "7", "--pause", "1.5", "--recipient", SECRET, "--dry-run"]
    read = _read(monkeypatch, *typed, "--since", "2026-01-31T09:30:00+01:00")
    assert (read["limit"], read["pause"], read["dry_run"]) == (7, 1.5, True)
    assert read["recipient"] == SECRET
    assert str(read["since"]) == "2026-01-31 08:30:00+00:00"


@pytest.mark.parametrize(
    ("typed", "named"),
    [
        (["--limit", "0"], "--limit"),
        (["--limit", "-3"], "--limit"),
        (["--limit", "1.5"], "--limit"),
        (["--limit", "٣"], "--limit"),
        (["--limit", "9" * 5000], "--limit"),
        (["--pause", "soon"], "--pause"),
        (["--pause", "-1"], "--pause"),
        (["--pause", "nan"], "--pause"),
        (["--pause", "inf"], "--pause"),
        (["--since", "yesterday"], "--since"),
        (["--since", "2026-01-31T09:30:00"], "--since"),
        (["--since", "2026-02-30T09:30:00Z"], "--since"),
        (["--recipient", ""], "--recipient"),
        (["--recipient", "ad\udcffa"], "--recipient"),
        (["--recipent", SECRET], "--recipent"),
        ([f"--recipent={SECRET}"], "--recipent"),
        # No option may be abbreviated: a later one could take the short form over.
        (["--recip", SECRET], "--recip"),
        ([SECRET], "a word without an option"),
        (["--", SECRET], "a word without an option"),
        ([f"-r{SECRET}"], "a word without an option"),
        # A value whose option was forgotten.
        ([f"--{SECRET}"], "a word without an option"),
        (["--status", SECRET], "--status"),
        ([f"--status={SECRET}"], "--status"),
        ([f"--dry-run={SECRET}"], "--dry-run"),
        ([f"--help={SECRET}"], "--help"),
        ([f"--limit={SECRET}"], "--limit"),
        (["--recipient"], "--recipient"),
    ],
)
def test_what_is_wrong_is_refused(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    typed: list[str],
    named: str,
) -> None:
    with pytest.raises(SystemExit) as ended:
        _read(monkeypatch, *typed)
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert named in said.splitlines()[-1]
    assert SECRET not in said


def test_the_rule_that_was_broken_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        _read(monkeypatch, "--limit", "0")
    assert capsys.readouterr().err.endswith("--limit: must be a whole number from 1\n")
