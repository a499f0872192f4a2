"""The arguments of `locipalace`, and what it prints of itself: what to do next without a command,
the pages of its documentation, and shell completion.

Most commands pass their arguments on to a management command. Completion of commands and options
for bash, zsh and fish is made from the parser.
"""

from __future__ import annotations

from argparse import (
    ArgumentParser,
    ArgumentTypeError,
    Namespace,
    RawDescriptionHelpFormatter,
    _SubParsersAction,
)
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from locipalace import __version__, installation
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


_BASH = """\
_locipalace() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} words
    case $COMP_CWORD:${{COMP_WORDS[1]}} in
        1:*) words="{commands}" ;;
{cases}
    esac
    COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o default -F _locipalace locipalace
"""
# What stands for a file or a folder in the help.
_FILES = {"FILE", "FOLDER", "OUT.zip"}
_ZSH = "autoload -Uz compinit bashcompinit && compinit && bashcompinit\n"


def completion_script(shell: str) -> str:
    """The shell's code: `source <(locipalace completion bash)`; in fish, piped into `source`."""
    words = _words()
    if shell == "fish":
        return "".join(_fish(words))
    cases = "\n".join(f'        *:{name}) words="{" ".join(w)}" ;;' for name, w in words.items())
    bash = _BASH.format(commands=" ".join([*words, "--help", "--version"]), cases=cases)
    return _ZSH + bash if shell == "zsh" else bash


def _words() -> dict[str, list[str]]:
    """By command: its options, and the choices of its arguments."""
    words = {name: _words_of(made) for name, made in _commands().items()}
    words["docs"] += sorted(name for name, _ in _pages())
    return words


def _commands() -> dict[str, ArgumentParser]:
    [commands] = [each for each in parser()._actions if isinstance(each, _SubParsersAction)]
    return dict(commands.choices)


def _words_of(made: ArgumentParser) -> list[str]:
    words: list[str] = []
    for action in made._actions:
        words += [*action.option_strings, *map(str, action.choices or ())]
    return words


def _takes_files(made: ArgumentParser) -> bool:
    return any(action.metavar in _FILES for action in made._actions)


def _fish(words: dict[str, list[str]]) -> list[str]:
    lines = ["complete -c locipalace -n __fish_use_subcommand -f -l version\n"]
    takes_files = {name for name, made in _commands().items() if _takes_files(made)}
    for name, its_words in words.items():
        help_ = ENTRIES[name].help.replace("'", r"\'")
        lines.append(
            f"complete -c locipalace -n __fish_use_subcommand -f -a {name} -d '{help_}'\n"
            f"complete -c locipalace -n '__fish_seen_subcommand_from {name}' "
            f"{'' if name in takes_files else '-f '}-a '{' '.join(its_words)}'\n"
        )
    return lines


def docs_pages() -> str:
    """The names of the pages of the documentation, each with its title."""
    found = {
        name: path.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")
        for name, path in _pages()
    }
    width = max(map(len, found))
    rows = [f"  {name:<{width}}  {title}" for name, title in sorted(found.items())]
    return "\n".join(["`locipalace docs PAGE` prints one of these.", "", *rows, ""])


def docs_page(name: str) -> str:
    """
    Raises:
        LookupError: there is no such page.
    """
    plain = name.removeprefix("docs/").removesuffix(".md")
    if path := dict(_pages()).get(plain):
        return path.read_text(encoding="utf-8")
    raise LookupError(f"There is no page {name}; `locipalace docs` lists them.")


def _pages() -> Iterator[tuple[str, Path]]:
    for pattern in ("*.md", "guides/*.md"):
        for path in (installation.APP / "docs").glob(pattern):
            # A list of links for the site alone.
            if path.stem != "index":
                yield path.relative_to(installation.APP / "docs").with_suffix("").as_posix(), path


def overview() -> str:
    home = installation.home()
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
