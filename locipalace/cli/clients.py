"""Assistants that can use the palace by MCP: where each keeps its list of servers, and its form."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Client:
    """
    Attributes:
        label: Its name.
        file: Finds the file of its settings.
        servers: The key of the list of servers in it; with TOML, of its tables.
        typed: Whether an entry says that it is a program (`"type": "stdio"`).
        then: What to do once the file is written.
    """

    label: str
    file: Callable[[], Path]
    servers: str = "mcpServers"
    typed: bool = False
    then: str = "Start it again to use your palace there."

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


def _codex() -> Path:
    home = os.environ.get("CODEX_HOME") or str(Path.home() / ".codex")
    return Path(home) / "config.toml"


CLIENTS = {
    "claude-code": Client("Claude Code", _in_home(".claude.json"), typed=True),
    "claude-desktop": Client(
        "Claude Desktop", _in_applications("Claude", "claude_desktop_config.json")
    ),
    "codex": Client("Codex", _codex, "mcp_servers"),
    "cursor": Client("Cursor", _in_home(".cursor", "mcp.json")),
    "gemini": Client("Gemini CLI", _in_home(".gemini", "settings.json")),
    "vscode": Client(
        "VS Code",
        _in_applications("Code", "User", "mcp.json"),
        "servers",
        typed=True,
        then="Start the server `loci` in its list of MCP servers.",
    ),
}
