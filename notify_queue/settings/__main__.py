"""Rewrites ``.env.example`` and the table in docs/settings.md from the declarations."""

from pathlib import Path
from typing import Final

from notify_queue.settings.documents import render_env_example, render_table

_ROOT: Final = Path(__file__).parents[2]
_BEGIN: Final = "<!-- settings: begin -->\n"
_END: Final = "<!-- settings: end -->\n"


def with_table(page: str) -> str:
    """Put the table between the markers of the page; the rest is written by hand."""
    before, _, rest = page.partition(_BEGIN)
    _, _, after = rest.partition(_END)
    return f"{before}{_BEGIN}{render_table()}{_END}{after}"


def main() -> None:
    """Write both documents in place."""
    page = _ROOT / "docs" / "settings.md"
    page.write_text(with_table(page.read_text(encoding="utf-8")), encoding="utf-8")
    (_ROOT / ".env.example").write_text(render_env_example(), encoding="utf-8")


if __name__ == "__main__":
    main()
