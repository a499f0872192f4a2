"""The arguments of `locipalace`. Most commands pass theirs on to a management command."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from locipalace import __version__
from locipalace.cli.clients import AGENTS, CLIENTS

SHELLS = ("bash", "zsh", "fish")
SCOPES = ("read", "write", "admin")


@dataclass(frozen=True, slots=True)
class Entry:
    """
    Attributes:
        runs: The management command; empty if there is none.
        embeds: Whether it needs the embedding model.
        makes_tables: Whether tables and owner are made first, as it may be the first command of
            all. Some commands do so by themselves.
    """

    help: str
    add: Callable[[ArgumentParser], None]
    runs: str = ""
    embeds: bool = False
    makes_tables: bool = False


def _count(text: str) -> int:
    if text.isdecimal() and int(text) > 0:
        return int(text)
    raise ArgumentTypeError(f"{text!r} is not a whole number from 1 on")


def _port(text: str) -> int:
    if text.isdecimal() and 0 < int(text) < 2**16:
        return int(text)
    raise ArgumentTypeError(f"{text!r} is not a port; give one of 1 to 65535, such as 8001")


def _run(parser: ArgumentParser) -> None:
    parser.add_argument("--port", type=_port, default=8000, help="the web's port (8000)")
    parser.add_argument(
        "--host",
        choices=["127.0.0.1", "0.0.0.0"],  # noqa: S104 - only for who asks for it.
        help="0.0.0.0 in a container; else leave it",
    )
    parser.add_argument("--no-browser", action="store_true", help="only print the address")


def _palace(parser: ArgumentParser) -> None:
    parser.add_argument("--user", metavar="NAME", help="whose palace; else the owner's")
    parser.add_argument("--subject", metavar="USER_ID", help="the palace kept for this person")


def _json(parser: ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")


def _add(parser: ArgumentParser) -> None:
    parser.add_argument("text", nargs="?", metavar="TEXT", help="standard input without it")
    _palace(parser)
    _json(parser)


def _ask(parser: ArgumentParser) -> None:
    parser.add_argument("question", metavar="QUESTION")
    _palace(parser)
    _json(parser)


def _search(parser: ArgumentParser) -> None:
    parser.add_argument("query", metavar="QUERY")
    parser.add_argument("--top-k", type=_count, metavar="N", help="how many messages")
    _palace(parser)
    _json(parser)


def _import(parser: ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="an export of another program, or a folder")
    parser.add_argument("--yes", action="store_true", help="import without asking")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--preview", action="store_true", help="only look; change nothing")
    how.add_argument(
        "--watch", action="store_true", help="import what is put into the folder, until Ctrl-C"
    )
    _palace(parser)
    _json(parser)


def _export(parser: ArgumentParser) -> None:
    parser.add_argument("file", metavar="OUT.zip")
    parser.add_argument("--overwrite", action="store_true", help="replace the file")
    _palace(parser)
    _json(parser)


def _key(parser: ArgumentParser) -> None:
    parser.add_argument("--name", help="what it is for")
    parser.add_argument("--scope", action="append", choices=SCOPES, help="what it may do (all)")
    parser.add_argument("--subject", metavar="USER_ID", help="the one palace it opens")
    parser.add_argument("--expires", metavar="DAYS", type=_count, help="it ends by itself then")
    parser.add_argument("--owner", metavar="NAME", help="whose key; else the owner's")
    parser.add_argument(
        "--trust-open-webui", action="store_true", help="Open WebUI says who is talking"
    )
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument("--list", action="store_true", help="list the keys")
    instead.add_argument("--revoke", metavar="START", help="revoke the key that begins so")
    _json(parser)


def _connect(parser: ArgumentParser) -> None:
    parser.add_argument("client", choices=sorted(CLIENTS))
    parser.add_argument("--yes", action="store_true", help="write without asking")
    parser.add_argument("--undo", action="store_true", help="take it out again, without asking")
    parser.add_argument("--no-hooks", action="store_true", help="only the MCP server")
    parser.add_argument("--new-key", action="store_true", help="make another key for assistants")
    _json(parser)


def _hook(parser: ArgumentParser) -> None:
    parser.add_argument("agent", choices=AGENTS)


def _backup(parser: ArgumentParser) -> None:
    parser.add_argument("file", nargs="?", metavar="FILE", help="else one in the data folder")
    parser.add_argument("--to", metavar="FOLDER", help="a file named by the time, in this folder")
    parser.add_argument(
        "--keep", type=_count, metavar="N", help="delete all but the newest N there"
    )
    parser.add_argument("--passphrase-file", metavar="FILE", help="encrypt it with what is in FILE")
    parser.add_argument("--with-secrets", action="store_true", help="add the signing key")
    parser.add_argument("--drill", metavar="FILE", help="try whether FILE can be restored")
    _json(parser)


def _restore(parser: ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE")
    parser.add_argument("--passphrase-file", metavar="FILE", help="of an encrypted backup")
    parser.add_argument("--replace", action="store_true", help="delete what is there; with --yes")
    parser.add_argument("--yes", action="store_true", help="confirm --replace")


def _completion(parser: ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS)


def _docs(parser: ArgumentParser) -> None:
    parser.add_argument("page", nargs="?", metavar="PAGE", help="its name; a list without it")


def _nothing(_parser: ArgumentParser) -> None:
    pass


ENTRIES = {
    "run": Entry("start Loci and open it in the browser", _run, "run", embeds=True),
    "add": Entry("remember a text, word for word", _add, "add", embeds=True),
    "ask": Entry("answer a question from your palace", _ask, "ask", embeds=True, makes_tables=True),
    "search": Entry("find what was said", _search, "recall", embeds=True, makes_tables=True),
    "import": Entry(
        "bring in conversations: ChatGPT, Claude, Gemini and others",
        _import,
        "import_chats",
        embeds=True,
    ),
    "export": Entry(
        "write your whole palace into a zip", _export, "export_palace", makes_tables=True
    ),
    "key": Entry(
        "print a key for a program, list or revoke keys", _key, "api_key", makes_tables=True
    ),
    "connect": Entry("give an assistant your palace, by MCP and hooks", _connect),
    "doctor": Entry("check what Loci needs", _json, "doctor"),
    "backup": Entry("write everything into one file", _backup, "backup"),
    "restore": Entry("put a backup back", _restore, "restore"),
    "sign-in": Entry(
        "print a new address that signs you in", _nothing, "sign_in_link", makes_tables=True
    ),
    "docs": Entry("read the documentation", _docs),
    "mcp": Entry("connect an assistant with the running Loci (by connect)", _nothing),
    "hook": Entry("recall or save for a coding agent (by connect)", _hook),
    "completion": Entry("print the completion of a shell", _completion),
    "manage": Entry("a command for operators (`locipalace manage help`)", _nothing),
}


class _CommandParser(ArgumentParser):
    """Refuses unknown arguments with the command's own usage; argparse prints that of all."""

    def parse_known_args(self, *given: Any, **options: Any) -> tuple[Namespace, list[str]]:  # type: ignore[override]
        parsed, unknown = super().parse_known_args(*given, **options)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}{self._hint(unknown[0])}")
        return parsed, unknown

    def _hint(self, unknown: str) -> str:
        if not unknown.startswith("-"):
            return " (several words are one argument in quotes)"
        options = [name for name in self._option_string_actions if name.startswith("--")]
        close = get_close_matches(unknown.partition("=")[0], options, n=1)
        return f" (did you mean {close[0]}?)" if close else ""


def parser() -> ArgumentParser:
    made = ArgumentParser(
        "locipalace",
        description="Loci, a memory palace for AI chat.",
        epilog="`locipalace COMMAND --help` says more. Without a command: how things are.",
        formatter_class=RawDescriptionHelpFormatter,
    )
    made.add_argument("--version", action="version", version=f"Loci {__version__}")
    commands = made.add_subparsers(dest="command", metavar="COMMAND", parser_class=_CommandParser)
    for name, entry in ENTRIES.items():
        described = entry.help[0].upper() + entry.help[1:] + "."
        entry.add(commands.add_parser(name, help=entry.help, description=described))
    return made
