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
    said = capsys.readouterr().err.splitlines()[-1]
    assert named in said
    assert SECRET not in said
