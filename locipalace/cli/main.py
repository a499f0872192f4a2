"""`locipalace`: read the arguments, prepare what a command needs, and run it."""

from __future__ import annotations

import io
import json
import os
import sys
from argparse import Namespace
from collections.abc import Sequence
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path

from locipalace import installation
from locipalace.agents import bridge, hook_command
from locipalace.cli import connect
from locipalace.cli.arguments import (
    ENTRIES,
    Entry,
    completion_script,
    docs_page,
    docs_pages,
    overview,
    parser,
)

# Browsers that would take over the terminal where Loci runs.
_IN_A_TERMINAL = {"www-browser", "w3m", "lynx", "links", "elinks"}


def main(arguments: Sequence[str] | None = None) -> None:
    given = list(sys.argv[1:] if arguments is None else arguments)
    if sys.platform == "win32":
        sys.exit("Loci: on Windows, install it in WSL 2 (`wsl --install`) and run it there.")
    installation.enter()
    if given[:1] == ["manage"]:
        _manage(given[1:])
        return
    options = parser().parse_args(given)
    match options.command:
        case None:
            sys.stdout.write(overview())
        case "connect":
            connect.run(options, _make_key)
        case "mcp":
            bridge.serve(sys.stdin.buffer, sys.stdout.buffer)
        case "hook":
            hook_command.run(sys.stdin, sys.stdout, sys.stderr)
        case "completion" | "docs":
            sys.stdout.write(_description(options))
        case _:
            _end_on_mistake(options)
            _run(options.command, given[1:])


def _description(options: Namespace) -> str:
    if options.command == "completion":
        return completion_script(options.shell)
    try:
        return docs_page(options.page) if options.page else docs_pages()
    except LookupError as error:
        sys.stderr.write(f"Loci: {error.args[0]}\n")
        sys.exit(1)


def _end_on_mistake(options: Namespace) -> None:
    """End if the command cannot work, before databases are started for it."""
    if said := _mistake(options):
        sys.stderr.write(f"Loci: {said}\n")
        sys.exit(1)


def _mistake(options: Namespace) -> str:
    try:
        return _wrong_file(options) or _wrong_text(options)
    except OSError as error:  # Such as a folder that is somebody else's.
        return f"{error.filename}: {error.strerror}."


def _wrong_file(options: Namespace) -> str:
    match options.command:
        case "import" | "restore" if not Path(options.file).exists():
            return f"There is no file {options.file}."
        case "import" if options.watch and not Path(options.file).is_dir():
            return f"--watch takes a folder, and {options.file} is none."
        case "backup" if options.drill and not Path(options.drill).exists():
            return f"There is no file {options.drill}."
        case "backup" if options.file and Path(options.file).exists():
            return f"{options.file} is there already; name another."
        case "export" if Path(options.file).exists() and not options.overwrite:
            return f"{options.file} is there already; name another, or add --overwrite."
    return ""


def _wrong_text(options: Namespace) -> str:
    match options.command:
        case "add" if options.text is not None and not options.text.strip():
            return "There is nothing to remember: the text is empty."
        case "ask" if not options.question.strip():
            return "The question is empty; write what you want to know."
        case "search" if not options.query.strip():
            return "The query is empty; write what you want to find."
    return ""


def _make_key(name: str) -> str:
    """A key for the owner's own palace."""
    printed = io.StringIO()
    arguments = ["--name", name, "--scope", "read", "--scope", "write", "--subject", "", "--json"]
    with redirect_stdout(printed):
        _run("key", arguments)
    return str(json.loads(printed.getvalue())["key"])


def _manage(rest: list[str]) -> None:
    from config.command_line import main as run_command  # noqa: PLC0415 - on the path only now.

    run_command(["locipalace manage", *rest])


def _run(name: str, rest: list[str]) -> None:
    from config.command_line import main as run_command  # noqa: PLC0415 - on the path only now.

    entry = ENTRIES[name]
    passed = PASSED.get(name, list)(rest)
    run_command(["locipalace", entry.runs, *passed], partial(_execute, entry))


def _execute(entry: Entry, given: list[str]) -> None:
    """Run the management command `given`, with the errors as they are."""
    import django  # noqa: PLC0415 - `locipalace --help` need not wait for it.

    django.setup()
    from locipalace.cli import commands  # noqa: PLC0415 - needs Django.

    if entry.embeds:
        commands.build_embedder()
    if entry.makes_tables:
        commands.make_tables()
    commands.execute(given)


def _for_run(rest: list[str]) -> list[str]:
    kept = [word for word in rest if word != "--no-browser"]
    return [*kept, "--browser"] if kept == rest and _has_browser() else kept


def _has_browser() -> bool:
    """Whether a person sits before a desktop here, or has named a browser."""
    if not sys.stdout.isatty() or os.environ.get("CI"):
        return False
    # An editor on another machine names one that opens pages there.
    if browser := os.environ.get("BROWSER", "").split():
        return Path(browser[0]).name not in _IN_A_TERMINAL
    if os.environ.get("SSH_CONNECTION"):
        return False
    return sys.platform == "darwin" or bool(
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    )


def _for_search(rest: list[str]) -> list[str]:
    return rest if "--json" in rest else [*rest, "--brief"]


def _for_sign_in(rest: list[str]) -> list[str]:
    from config.preconditions import address_of_running  # noqa: PLC0415 - on the path only now.

    if address := address_of_running(installation.home()):
        return [*rest, "--base", address]
    sys.stderr.write(f"Loci is not running: `{installation.START}` first, then open the address.\n")
    return rest


def _for_backup(rest: list[str]) -> list[str]:
    options = parser().parse_args(["backup", *rest])
    if options.file or options.to or options.drill:
        return rest
    folder = os.environ.get("LOCI_BACKUP_FOLDER") or str(installation.home() / "backups")
    return [*rest, "--to", folder]


# What the management command is given in place of a command's own arguments.
PASSED = {
    "run": _for_run,
    "search": _for_search,
    "backup": _for_backup,
    "sign-in": _for_sign_in,
}
