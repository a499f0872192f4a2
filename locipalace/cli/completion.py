"""Completion of commands and options for bash, zsh and fish, made from the parser."""

from __future__ import annotations

from argparse import ArgumentParser, _SubParsersAction

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
_ZSH = "autoload -Uz compinit bashcompinit && compinit && bashcompinit\n"


def script(shell: str) -> str:
    """The shell's code; `source <(locipalace completion bash)` loads it."""
    words = _words()
    if shell == "fish":
        return "".join(_fish(words))
    cases = "\n".join(f'        *:{name}) words="{" ".join(w)}" ;;' for name, w in words.items())
    bash = _BASH.format(commands=" ".join(words), cases=cases)
    return _ZSH + bash if shell == "zsh" else bash


def _words() -> dict[str, list[str]]:
    """By command: its options, and the choices of its arguments."""
    [commands] = [each for each in parser()._actions if isinstance(each, _SubParsersAction)]
    return {name: _words_of(made) for name, made in commands.choices.items()}


def _words_of(made: ArgumentParser) -> list[str]:
    words: list[str] = []
    for action in made._actions:
        words += action.option_strings or list(action.choices or ())
    return words


def _fish(words: dict[str, list[str]]) -> list[str]:
    lines = []
    for name, its_words in words.items():
        help_ = ENTRIES[name].help.replace("'", r"\'")
        lines.append(
            f"complete -c locipalace -n __fish_use_subcommand -a {name} -d '{help_}'\n"
            f"complete -c locipalace -n '__fish_seen_subcommand_from {name}' "
            f"-a '{' '.join(its_words)}'\n"
        )
    return lines
