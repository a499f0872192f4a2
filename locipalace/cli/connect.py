"""`locipalace connect CLIENT`: give an assistant the palace, by MCP and by hooks where it has them.

It shows what it will write and asks; `--undo` takes it out again. The key that the assistant's
programs use is kept in the data folder, not in the assistant's files.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

from locipalace import installation
from locipalace.agents import connection
from locipalace.agents.connection import CannotReach
from locipalace.cli import clients
from locipalace.cli.clients import CLIENTS, CannotConnect, Client

KEY_NAME = "assistants on this machine"
BYTE_ORDER_MARK = "\ufeff"
# By file: what it has, and what it is to have.
Edits = dict[Path, tuple[str, str]]


def run(options: Namespace, make_key: Callable[[str], str]) -> None:
    """
    Args:
        make_key: Makes a key of this name.
    """
    client = CLIENTS[options.client]
    try:
        lines, outcome = _act(client, options, make_key)
    except (CannotConnect, CannotReach) as error:
        sys.exit(f"Loci: {error}")
    except OSError as error:
        sys.exit(f"Loci: {error.filename or client.file()}: {error.strerror or error}.")
    as_json = json.dumps({"client": options.client, "file": str(client.file()), **outcome})
    sys.stdout.write(f"{as_json}\n" if options.json else "\n".join([*lines, ""]))


def _act(
    client: Client, options: Namespace, make_key: Callable[[str], str]
) -> tuple[list[str], dict[str, Any]]:
    """What to print, and the same for programs."""
    if options.undo:
        return _undo(client, options.client)
    entry = our_entry(client)
    with_hooks = not options.no_hooks
    outcome: dict[str, Any] = {"entry": entry}
    if client.hooks and with_hooks:
        outcome["hook"] = our_hook(options.client)
    try:
        edits = _edits(client, options.client, entry, with_hooks=with_hooks)
    except CannotConnect as error:
        if options.json and not options.yes:  # Somebody has to write it by hand.
            return [], {**outcome, "problem": str(error), "written": False}
        raise
    outcome["files"] = [str(file) for file in edits]
    if not options.yes and not options.json:
        shown = _shown(client, options.client, entry, with_hooks=with_hooks)
        sys.stdout.write("\n".join([*shown, ""]))
    if not options.yes and not _wants_it(options):
        return ["Nothing was written. Add --yes to write it."], {**outcome, "written": False}
    _have_key(make_key, is_new=options.new_key)
    _write(edits)
    written = [f"Written to {file}." for file in edits]
    return [*written, client.then.format(label=client.label)], {**outcome, "written": True}


def _wants_it(options: Namespace) -> bool:
    if options.json or not sys.stdin.isatty():
        return False
    try:
        return input("Write this? [Y/n] ").strip().lower() in {"", "y", "yes"}
    except (EOFError, KeyboardInterrupt):
        sys.stdout.write("\n")
        return False


def _undo(client: Client, name: str) -> tuple[list[str], dict[str, Any]]:
    edits = _edited(
        [
            (client.file(), lambda text: clients.without_server(client, text)),
            (_hooks_file(client), lambda text: clients.without_hooks(client, name, text)),
        ]
    )
    changed = {file: texts for file, texts in edits.items() if texts[0] != texts[1]}
    emptied = [file for file, (_, after) in changed.items() if _is_empty(file, after)]
    _write({file: texts for file, texts in changed.items() if file not in emptied})
    for file in emptied:
        file.unlink()
    lines = [
        f"{file} had nothing else, so it is deleted."
        if file in emptied
        else f"Taken out of {file}."
        for file in changed
    ]
    if changed:
        lines.append(f"The key stays in {connection.profile_path()}, for other assistants.")
    return lines or [f"{client.file()} has no entry of Loci's."], {"removed": bool(changed)}


def _is_empty(file: Path, text: str) -> bool:
    """Nothing is left in it. A symbolic link stays, with its file: somebody has put it there."""
    return text.strip(f"{BYTE_ORDER_MARK} \r\n") in {"", "{}"} and not file.is_symlink()


def _edits(client: Client, name: str, entry: dict[str, Any], *, with_hooks: bool) -> Edits:
    def hooked(text: str) -> str:
        if with_hooks:
            return clients.with_hooks(client, name, text, our_hook(name))
        return clients.without_hooks(client, name, text)

    return _edited(
        [
            (client.file(), lambda text: clients.with_server(client, text, entry)),
            (_hooks_file(client), hooked),
        ]
    )


def _hooks_file(client: Client) -> Path | None:
    return client.hooks.file() if client.hooks else None


def _edited(changes: list[tuple[Path | None, Callable[[str], str]]]) -> Edits:
    """Two changes may be to the same file. A file that has nothing and gets nothing is left out."""
    edits: Edits = {}
    for file, change in changes:
        if file is not None:
            before, now = edits.get(file) or (_text_of(file),) * 2
            edits[file] = before, _changed_in_form(now, change)
    return {file: texts for file, texts in edits.items() if any(texts)}


def _text_of(file: Path) -> str:
    try:
        return file.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError as error:
        raise CannotConnect(f"{file} is not UTF-8, so nothing was written into it.") from error


def _changed_in_form(text: str, change: Callable[[str], str]) -> str:
    """The changed text with the byte order mark and the line ends it had.

    A text in which only some lines end in CR LF is changed as it is; new lines end in LF.
    """
    mark = BYTE_ORDER_MARK if text.startswith(BYTE_ORDER_MARK) else ""
    plain = text.removeprefix(mark)
    if (ends := plain.count("\n")) and ends == plain.count("\r\n"):
        return mark + change(plain.replace("\r\n", "\n")).replace("\n", "\r\n")
    return mark + change(plain)


def _shown(client: Client, name: str, entry: dict[str, Any], *, with_hooks: bool) -> list[str]:
    as_json = json.dumps({client.servers: {clients.NAME: entry}}, indent=2)
    table = clients.toml_table(entry) if client.is_toml else as_json
    lines = [f"{client.label} reads {client.file()}. This is to be in it:", "", table, ""]
    if client.hooks and with_hooks:
        events = ", ".join(client.hooks.events)
        lines += [f"And in {client.hooks.file()}, for the hooks {events}:", ""]
        lines += [json.dumps(clients.hook_group(client, our_hook(name)), indent=2), ""]
    return [
        *lines,
        f"A key that reads and writes your palace will be in {connection.profile_path()}, which "
        "only you can read.",
        f"`{installation.COMMAND} connect {name} --undo` takes it out again.",
    ]


def our_entry(client: Client) -> dict[str, Any]:
    """The server: this program's `mcp`, on the data that it uses here."""
    command, *arguments = [*_program(), "mcp"]
    program = {"command": command, "args": arguments}
    entry: dict[str, Any] = {"type": "stdio", **program} if client.typed else {**program}
    if home := _home_elsewhere():
        entry["env"] = {"LOCI_HOME": home}
    return entry


def our_hook(name: str) -> str:
    """The command line of the hooks, for a shell."""
    home = _home_elsewhere()
    before = ["env", f"LOCI_HOME={home}"] if home else []
    return shlex.join([*before, *_program(), "hook", name])


def _program() -> list[str]:
    """Not by `-m`: with that, Python would run modules of the folder that an agent works in."""
    command = shutil.which("locipalace") if installation.IS_INSTALLED else None
    return [command] if command else [sys.executable, str(installation.HERE)]


def _home_elsewhere() -> str:
    """The data folder, where it is not the one that the program finds by itself."""
    home = os.environ.get("LOCI_HOME", "")
    usual = installation.data_folder() if installation.IS_INSTALLED else installation.APP / ".loci"
    return home if home != str(usual) else ""


def _have_key(make_key: Callable[[str], str], *, is_new: bool) -> None:
    """Write the profile: LOCI_API_KEY and LOCI_URL where they are set, else a key of its own.

    Raises:
        CannotReach: only LOCI_URL is set, or the profile cannot be read.
    """
    key, url = connection.from_environment()
    if key:
        connection.write_profile(url, key)
    elif is_new or not connection.read_profile().get("key"):
        connection.write_profile("", make_key(KEY_NAME))


def _write(edits: Edits) -> None:
    for file, (before, after) in edits.items():
        if before != after:
            _replace(file, after)


def _replace(file: Path, text: str) -> None:
    """Write it whole or not at all, where it really is, with the permissions it had."""
    real = file.resolve()
    real.parent.mkdir(parents=True, exist_ok=True)
    aside = real.with_name(f".{real.name}.{os.getpid()}")
    try:
        aside.touch(mode=0o600)
        aside.write_bytes(text.encode("utf-8"))
        if real.exists():
            shutil.copymode(real, aside)
        aside.replace(real)
    finally:
        aside.unlink(missing_ok=True)
