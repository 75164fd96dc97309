"""The example file and the table say what the declarations say."""

from io import StringIO
from pathlib import Path

import pytest
from dotenv import dotenv_values

from notify_queue.settings import describe, load, render_env_example, render_table
from notify_queue.settings.__main__ import with_table
from notify_queue.settings.values import declarations

ROOT = Path(__file__).parents[3]
REMEDY = "run `python -m notify_queue.settings`"


def variables(text: str) -> dict[str, str]:
    read = dotenv_values(stream=StringIO(text), interpolate=False)
    return {name: value for name, value in read.items() if value is not None}


def test_the_example_file_is_up_to_date() -> None:
    text = (ROOT / ".env.example").read_text(encoding="utf-8")
    assert text == render_env_example(), REMEDY


def test_the_table_in_the_documents_is_up_to_date() -> None:
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    assert render_table() in page
    assert page == with_table(page), REMEDY


def test_the_table_goes_between_its_markers() -> None:
    page = "before\n<!-- settings: begin -->\nold\n<!-- settings: end -->\nafter\n"
    table = render_table()
    expected = f"before\n<!-- settings: begin -->\n{table}<!-- settings: end -->\nafter\n"
    assert with_table(page) == expected


@pytest.mark.parametrize("name", declarations())
def test_every_setting_stands_in_both_documents(name: str) -> None:
    assert f"\n{name}=" in render_env_example().replace("\n#", "\n")
    assert f"\n| `{name}` | " in render_table()


def test_the_example_file_works_as_it_stands() -> None:
    assert load(variables(render_env_example())).port == 3000


def test_the_commented_lines_of_the_example_are_the_defaults() -> None:
    written = variables(render_env_example().replace("\n#", "\n"))
    assert set(written) >= set(declarations())
    as_written = load(written | {"WORKER_ID": "w"})
    by_default = load({"DATABASE_URL": written["DATABASE_URL"], "WORKER_ID": "w"})
    assert as_written == by_default


def test_the_listing_has_one_line_a_setting_and_can_be_loaded_again() -> None:
    settings = load({"DATABASE_URL": "postgres://user@host/db", "PORT": "4000"})
    listing = describe(settings)
    assert [line.partition("=")[0] for line in listing.splitlines()] == list(declarations())
    assert "\nPORT=4000\n" in listing
    assert load(variables(listing)) == settings
