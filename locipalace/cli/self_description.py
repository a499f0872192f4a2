"""What `locipalace` prints of itself: what to do next without a command, its documentation, and
shell completion.

Completion of commands and options for bash, zsh and fish is made from the parser.
"""

from __future__ import annotations

from argparse import ArgumentParser, _SubParsersAction
from collections.abc import Iterator
from pathlib import Path

from locipalace import __version__, installation
from locipalace.cli.arguments import ENTRIES, parser

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


def script(shell: str) -> str:
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


def pages() -> str:
    """The names of the pages of the documentation, each with its title."""
    found = {
        name: path.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")
        for name, path in _pages()
    }
    width = max(map(len, found))
    rows = [f"  {name:<{width}}  {title}" for name, title in sorted(found.items())]
    return "\n".join(["`locipalace docs PAGE` prints one of these.", "", *rows, ""])


def page(name: str) -> str:
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


def text() -> str:
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
