"""`locipalace connect CLIENT`: put the palace into an assistant's list of MCP servers.

It shows the change first; `--write` makes it, `--undo` takes it back. Nothing else in the file
changes, and an entry of that name that is not ours is never touched.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tomllib
from argparse import Namespace
from pathlib import Path
from typing import Any

from locipalace import place
from locipalace.cli.clients import CLIENTS, Client

NAME = "loci"
# Around our table in a TOML file.
_BEGIN, _END = "# locipalace: begin", "# locipalace: end"
_BLOCK = re.compile(rf"\n*^{_BEGIN}$.*?^{_END}$\n?", re.MULTILINE | re.DOTALL)


class CannotConnect(Exception):
    """The message says why, and what to do."""


def run(options: Namespace) -> None:
    client = CLIENTS[options.client]
    try:
        lines, outcome = _act(client, options)
    except CannotConnect as error:
        sys.exit(f"Loci: {error}")
    except OSError as error:
        sys.exit(f"Loci: {client.file()} cannot be used: {error.strerror or error}.")
    as_json = json.dumps({"client": options.client, "file": str(client.file()), **outcome})
    sys.stdout.write(f"{as_json}\n" if options.json else "\n".join([*lines, ""]))


def _act(client: Client, options: Namespace) -> tuple[list[str], dict[str, Any]]:
    """What to print, and the same for programs."""
    file, entry = client.file(), our_entry(client)
    before = file.read_text(encoding="utf-8") if file.exists() else ""
    if options.undo:
        after = without_ours(client, before)
        changed = after != before
        if changed:
            _replace(file, after)
        done = f"Taken out of {file}." if changed else f"{file} has no entry of Loci's."
        return [done], {"removed": changed}
    after = with_ours(client, before, entry)
    if options.write:
        _replace(file, after)
        return [f"Written to {file}.", client.then], {"entry": entry, "written": True}
    shown = _table(entry) if client.is_toml else json.dumps(_nested(client, entry), indent=2)
    then = f"`locipalace connect {options.client} --write` puts it there, `--undo` takes it out."
    return [f"{client.label} reads {file}. This is to be in it:", "", shown, "", then], {
        "entry": entry,
        "written": False,
    }


def our_entry(client: Client) -> dict[str, Any]:
    """The server: this program's `mcp`, on the data that it uses here."""
    command = shutil.which("locipalace")
    if place.IS_INSTALLED and command:
        program = {"command": command, "args": ["mcp"]}
    elif place.IS_INSTALLED:
        program = {"command": sys.executable, "args": ["-m", "locipalace", "mcp"]}
    else:
        program = {"command": sys.executable, "args": [str(place.APP / "manage.py"), "mcp"]}
    entry: dict[str, Any] = {"type": "stdio", **program} if client.typed else {**program}
    home = os.environ.get("LOCI_HOME", "")
    if home and home != str(place.data_folder()):
        entry["env"] = {"LOCI_HOME": home}
    return entry


def with_ours(client: Client, text: str, entry: dict[str, Any]) -> str:
    """The file with our entry in it, once.

    Raises:
        CannotConnect: it has another entry of this name, or is not what it should be.
    """
    _refuse_others(client, text)
    if client.is_toml:
        rest = _BLOCK.sub("", text).rstrip("\n")
        return f"{rest}\n\n" * bool(rest) + f"{_BEGIN}\n{_table(entry)}\n{_END}\n"
    settings = _parsed(client, text)
    settings.setdefault(client.servers, {})[NAME] = entry
    return json.dumps(settings, indent=2, ensure_ascii=False) + "\n"


def without_ours(client: Client, text: str) -> str:
    """The file without our entry; the same text if it has none."""
    settings = _parsed(client, text)
    if NAME not in settings.get(client.servers, {}):
        return text
    _refuse_others(client, text)
    if client.is_toml:
        return _BLOCK.sub("\n", text).lstrip("\n")
    del settings[client.servers][NAME]
    if not settings[client.servers]:
        del settings[client.servers]
    return json.dumps(settings, indent=2, ensure_ascii=False) + "\n"


def _refuse_others(client: Client, text: str) -> None:
    found = _parsed(client, text).get(client.servers, {}).get(NAME)
    is_ours = bool(_BLOCK.search(text)) if client.is_toml else _is_ours(found)
    if found is not None and not is_ours:
        raise CannotConnect(
            f"{client.file()} has a server named {NAME!r} that this command did not write. Rename "
            "or remove it there, then run this again."
        )


def _is_ours(entry: Any) -> bool:
    arguments = entry.get("args") if isinstance(entry, dict) else None
    if not isinstance(arguments, list) or arguments[-1:] != ["mcp"]:
        return False
    words = [str(entry.get("command", "")), *map(str, arguments)]
    return any(Path(word).name in {"locipalace", "manage.py"} for word in words)


def _parsed(client: Client, text: str) -> dict[str, Any]:
    try:
        settings = tomllib.loads(text) if client.is_toml else json.loads(text.strip() or "{}")
    except ValueError as error:
        raise CannotConnect(
            f"{client.file()} cannot be read ({error}); comments are not understood. Add the entry "
            "by hand: this command without --write shows it."
        ) from error
    servers = settings.get(client.servers, {}) if isinstance(settings, dict) else None
    if not isinstance(servers, dict):
        raise CannotConnect(f"{client.file()} has no list of servers where one is expected.")
    return dict(settings)


def _nested(client: Client, entry: dict[str, Any]) -> dict[str, Any]:
    return {client.servers: {NAME: entry}}


def _table(entry: dict[str, Any]) -> str:
    """The entry as TOML. JSON's strings and lists are TOML's too."""
    rows = [f"{key} = {json.dumps(entry[key])}" for key in ("command", "args")]
    for name, value in entry.get("env", {}).items():
        rows.append(f"env = {{ {name} = {json.dumps(value)} }}")
    return "\n".join([f"[mcp_servers.{NAME}]", *rows])


def _replace(file: Path, text: str) -> None:
    """Write it whole or not at all, where it really is, with the permissions it had."""
    real = file.resolve()
    real.parent.mkdir(parents=True, exist_ok=True)
    aside = real.with_name(f".{real.name}.{os.getpid()}")
    try:
        aside.touch(mode=0o600)
        aside.write_text(text, encoding="utf-8")
        if real.exists():
            shutil.copymode(real, aside)
        aside.replace(real)
    finally:
        aside.unlink(missing_ok=True)
