"""Assistants that can use the palace: their settings files, and our MCP server and hooks in these.

Only what is ours changes: a file that cannot be read, or has an entry of our name by somebody else,
is refused.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from locipalace.cli import json_text

NAME = "loci"
# Seconds; the hooks themselves stop before that.
HOOK_TIMEOUT_S = 15
# Around our table in a TOML file.
_BEGIN, _END = "# locipalace: begin", "# locipalace: end"
_BLOCK = re.compile(rf"\n*^{_BEGIN}$.*?^{_END}$\n?", re.MULTILINE | re.DOTALL)

Settings = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Hooks:
    """The hooks of a coding agent.

    Attributes:
        file: Finds the file with them.
        events: When a session begins; when it pauses, is compacted and ends.
        second: A second, in the unit of their time limit.
        version: Of the file's form, if that has one; an event then has a list of handlers, which
            elsewhere are in groups.
    """

    file: Callable[[], Path]
    events: tuple[str, ...]
    second: int = 1
    version: int | None = None


@dataclass(frozen=True, slots=True)
class Client:
    """
    Attributes:
        label: Its name.
        file: Finds the file of its settings.
        servers: The key of the list of servers in it; with TOML, of its tables.
        typed: Whether an entry says that it is a program (`"type": "stdio"`).
        hooks: None if it has none, or none that we know how to use.
        then: What to do once the files are written; {label} is its name.
    """

    label: str
    file: Callable[[], Path]
    servers: str = "mcpServers"
    typed: bool = False
    hooks: Hooks | None = None
    then: str = "Start {label} again to use your palace there."

    @property
    def is_toml(self) -> bool:
        return self.file().suffix == ".toml"


def _in_home(*parts: str) -> Callable[[], Path]:
    return lambda: Path.home().joinpath(*parts)


def _in_applications(*parts: str) -> Callable[[], Path]:
    """In the folder in which desktop applications keep their settings."""

    def folder() -> Path:
        if sys.platform == "darwin":
            return Path.home().joinpath("Library", "Application Support", *parts)
        base = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
        return Path(base).joinpath(*parts)

    return folder


def _in_folder_of(variable: str, default: str, name: str) -> Callable[[], Path]:
    """In the agent's own folder in the home folder, which a variable may move."""
    return lambda: Path(os.environ.get(variable) or Path.home() / default) / name


CLIENTS = {
    "claude-code": Client(
        "Claude Code",
        _in_folder_of("CLAUDE_CONFIG_DIR", "", ".claude.json"),
        typed=True,
        hooks=Hooks(
            _in_folder_of("CLAUDE_CONFIG_DIR", ".claude", "settings.json"),
            ("SessionStart", "Stop", "PreCompact", "SessionEnd"),
        ),
    ),
    "claude-desktop": Client(
        "Claude Desktop", _in_applications("Claude", "claude_desktop_config.json")
    ),
    "codex": Client(
        "Codex",
        _in_folder_of("CODEX_HOME", ".codex", "config.toml"),
        "mcp_servers",
        hooks=Hooks(
            _in_folder_of("CODEX_HOME", ".codex", "hooks.json"),
            ("SessionStart", "Stop", "PreCompact"),
        ),
        then="Start {label} again, and allow the hooks there: /hooks.",
    ),
    "cursor": Client(
        "Cursor",
        _in_home(".cursor", "mcp.json"),
        hooks=Hooks(
            _in_home(".cursor", "hooks.json"),
            ("sessionStart", "stop", "preCompact", "sessionEnd"),
            version=1,
        ),
    ),
    "gemini": Client(
        "Gemini CLI",
        _in_home(".gemini", "settings.json"),
        hooks=Hooks(
            _in_home(".gemini", "settings.json"),
            ("SessionStart", "AfterAgent", "PreCompress", "SessionEnd"),
            second=1000,
        ),
    ),
    "vscode": Client(
        "VS Code",
        _in_applications("Code", "User", "mcp.json"),
        "servers",
        typed=True,
        then="Start the server `loci` in its list of MCP servers.",
    ),
}
AGENTS = sorted(name for name, client in CLIENTS.items() if client.hooks)


class CannotConnect(Exception):
    """The message says why, and what to do."""


def with_server(client: Client, text: str, entry: Settings) -> str:
    """The file with our server in it, once.

    Raises:
        CannotConnect: it has another server of this name, or is not what it should be.
    """
    _refuse_others(client, text)
    if client.is_toml:
        return _with_table(client.file(), text, entry)
    settings = _servers_read(client, text)
    settings.setdefault(client.servers, {})[NAME] = entry
    return json_text.changed(text, settings)


def without_server(client: Client, text: str) -> str:
    """The file without our server; the same text if it has none."""
    settings = _servers_read(client, text)
    if NAME not in settings.get(client.servers, {}):
        return text
    _refuse_others(client, text)
    if client.is_toml:
        return _without_table(text)
    del settings[client.servers][NAME]
    # A comment may be among what was there: a server that its owner has taken out for now.
    if not settings[client.servers] and not json_text.has_comments(text, client.servers):
        del settings[client.servers]
    return json_text.changed(text, settings)


def with_hooks(client: Client, name: str, text: str, command: str) -> str:
    """The file with our hooks in it, once each."""
    hooks = client.hooks
    if hooks is None:
        return text
    settings = _hooks_read(hooks.file(), without_hooks(client, name, text))
    if hooks.version is not None:
        settings.setdefault("version", hooks.version)
    for event in hooks.events:
        group = hook_group(client, command)
        settings.setdefault("hooks", {}).setdefault(event, []).append(group)
    return json_text.changed(text, settings)


def without_hooks(client: Client, name: str, text: str) -> str:
    """The file without our hooks; the same text if it has none."""
    if client.hooks is None:
        return text
    settings = _hooks_read(client.hooks.file(), text)
    ours = [event for event in settings.get("hooks", {}) if _take_out(settings, event, name)]
    if not ours:
        return text
    for event in ours:
        if not settings["hooks"][event] and not json_text.has_comments(text, "hooks", event):
            del settings["hooks"][event]
    if not settings["hooks"] and not json_text.has_comments(text, "hooks"):
        del settings["hooks"]
    if settings == {"version": client.hooks.version}:
        settings = {}
    return json_text.changed(text, settings)


def hook_group(client: Client, command: str) -> Settings:
    """What an event's list has for our hook."""
    second = client.hooks.second if client.hooks else 1
    timeout = HOOK_TIMEOUT_S * second
    if client.hooks and client.hooks.version is not None:
        return {"command": command, "timeout": timeout}
    return {"hooks": [{"type": "command", "command": command, "timeout": timeout}]}


def toml_table(entry: Settings) -> str:
    """The server as TOML. JSON's strings and lists are TOML's too."""
    rows = [f"{key} = {json.dumps(entry[key])}" for key in ("command", "args")]
    for name, value in entry.get("env", {}).items():
        rows.append(f"env = {{ {name} = {json.dumps(value)} }}")
    return "\n".join([f"[mcp_servers.{NAME}]", *rows])


def _with_table(file: Path, text: str, entry: Settings) -> str:
    """
    Raises:
        CannotConnect: the file would not be TOML then.
    """
    rest = _without_table(text).rstrip("\n")
    changed = f"{rest}\n\n" * bool(rest) + f"{_BEGIN}\n{toml_table(entry)}\n{_END}\n"
    try:
        tomllib.loads(changed)
    except tomllib.TOMLDecodeError as error:
        raise CannotConnect(
            f"{file} has its servers in one line, to which this command cannot add another. Add "
            "the entry by hand: --json without --yes shows it."
        ) from error
    return changed


def _without_table(text: str) -> str:
    # A line end stays: another program may have written its table right behind ours.
    return _BLOCK.sub("\n", text).lstrip("\n") if _BLOCK.search(text) else text


def _take_out(settings: Settings, event: str, name: str) -> bool:
    """Take our handlers out, with the groups that have no others."""
    groups = settings["hooks"][event]
    kept = []
    for group in groups:
        if _is_our_hook(group, name):
            continue
        handlers = group.get("hooks") if isinstance(group, dict) else None
        if not isinstance(handlers, list) or not any(_is_our_hook(each, name) for each in handlers):
            kept.append(group)
        elif others := [each for each in handlers if not _is_our_hook(each, name)]:
            kept.append({**group, "hooks": others})
    if kept == groups:
        return False
    settings["hooks"][event] = kept
    return True


def _is_our_hook(handler: Any, name: str) -> bool:
    command = handler.get("command") if isinstance(handler, dict) else None
    return isinstance(command, str) and bool(
        re.search(rf"\blocipalace\b.* hook {re.escape(name)}$", command)
    )


def _refuse_others(client: Client, text: str) -> None:
    found = _servers_read(client, text).get(client.servers, {}).get(NAME)
    is_ours = bool(_BLOCK.search(text)) if client.is_toml else _is_our_server(found)
    if found is not None and not is_ours:
        raise CannotConnect(
            f"{client.file()} has a server named {NAME!r} that this command did not write. Rename "
            "or remove it there, then run this again."
        )


def _is_our_server(entry: Any) -> bool:
    arguments = entry.get("args") if isinstance(entry, dict) else None
    if not isinstance(arguments, list) or arguments[-1:] != ["mcp"]:
        return False
    words = [str(entry.get("command", "")), *map(str, arguments)]
    return any(Path(word).name in {"locipalace", "manage.py"} for word in words)


def _servers_read(client: Client, text: str) -> Settings:
    settings = _parsed(client.file(), text, is_toml=client.is_toml)
    if not isinstance(settings.get(client.servers, {}), dict):
        raise CannotConnect(f"{client.file()} has no list of servers where one is expected.")
    return settings


def _hooks_read(file: Path, text: str) -> Settings:
    settings = _parsed(file, text)
    hooks = settings.get("hooks", {})
    if not isinstance(hooks, dict) or not all(isinstance(each, list) for each in hooks.values()):
        raise CannotConnect(f"{file} has no hooks where they are expected.")
    return settings


def _parsed(file: Path, text: str, *, is_toml: bool = False) -> Settings:
    try:
        if is_toml:
            return tomllib.loads(text)
        settings = json_text.read(text)
    except (ValueError, RecursionError) as error:
        raise CannotConnect(
            f"{file} cannot be read ({error}). Mend it and run this again, or change it by hand: "
            "--json without --yes shows the entry."
        ) from error
    if not isinstance(settings, dict):
        raise CannotConnect(f"{file} is no JSON object, so nothing was written into it.")
    return settings
