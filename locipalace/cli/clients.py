"""Assistants that can use the palace: where each keeps its MCP servers and its hooks, and in what
form.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


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
