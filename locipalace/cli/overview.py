"""What `locipalace` prints without a command: how things are, and what to do next."""

from __future__ import annotations

from pathlib import Path

from locipalace import __version__, place
from locipalace.cli.arguments import ENTRIES


def text() -> str:
    home = place.home()
    width = max(map(len, ENTRIES))
    rows = [f"  locipalace {name:<{width}}  {entry.help}" for name, entry in ENTRIES.items()]
    return "\n".join(
        [f"Loci {__version__}: a memory palace for AI chat.", *_state(home), *rows, ""]
    )


def _state(home: Path) -> list[str]:
    from config.preconditions import address_of_running  # noqa: PLC0415 - on the path by now.

    running = address_of_running(home)
    if running:
        return [f"It is running: {running}", f"Your data are in {home}", ""]
    if (home / "postgres").exists():
        return ["It is not running: `locipalace run` starts it.", f"Your data are in {home}", ""]
    return ["Start here: `locipalace run`", f"Your data will be in {home}", ""]
