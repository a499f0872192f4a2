"""The pages that are made from elsewhere: the REST API, the command, and the repository's pages."""

from __future__ import annotations

from argparse import ArgumentParser, _SubParsersAction
from collections.abc import Iterable, Iterator
from pathlib import Path

from api.rest.openapi import Field, Operation, operations_by_group
from locipalace.cli.arguments import parser

REST_HEAD = """# REST, from the code

Each operation of the API, as `/api/docs/` and `/api/schema/` of your Loci have it.
[The guide](../api.md) has the conventions: keys, users, errors, limits.
"""
COMMAND_HEAD = """# The command, from the code

`locipalace` without a command says how things are.
[What each one is for](../install.md#the-command).
"""


# The repository's own pages, and what they are called here.
OF_THE_REPOSITORY = {"CHANGELOG.md": "changes.md", "SECURITY.md": "reporting.md"}


def write_pages(folder: Path) -> None:
    """Write the pages. An unchanged one is left, so that Sphinx does not build it again."""
    pages = {"rest.md": "\n".join(_rest()), "command.md": "\n".join(_command())}
    root = folder.parent.parent
    for original, name in OF_THE_REPOSITORY.items():
        # They lie above this folder, and link to pages in it.
        text = (root / original).read_text().replace("](docs/", "](/")
        pages[name] = with_pages_here(text, above="")
    for name, text in pages.items():
        page = folder / name
        if not page.exists() or page.read_text() != text:
            page.write_text(text)


def with_pages_here(text: str, above: str) -> str:
    """Links to the repository's pages lead to their pages here.

    Args:
        above: The way from the text's folder to the repository's.
    """
    for original, name in OF_THE_REPOSITORY.items():
        text = text.replace(f"]({above}{original}", f"](/reference/{name}")
    return text


def _rest() -> Iterator[str]:
    yield REST_HEAD
    for group, operations in operations_by_group().items():
        yield f"## {group[0].upper()}{group[1:]}\n"
        for operation in operations:
            yield from _operation(operation)


def _operation(operation: Operation) -> Iterator[str]:
    yield f"### `{operation.method} {operation.path}`\n"
    yield f"{operation.title}\n"
    if operation.said:
        yield f"{operation.said}\n"
    parts = (
        ("Parameters", operation.parameters),
        ("Sent", operation.sent),
        ("Answered", operation.answered),
    )
    for title, fields in parts:
        if fields:
            yield from _fields(title, fields)
    yield f"{operation.status} where all is well. Its name in the schema is `{operation.id}`.\n"


def _fields(title: str, fields: Iterable[Field]) -> Iterator[str]:
    yield f"| {title} | type | |\n|---|---|---|"
    for field in fields:
        place = f" ({field.place})" if field.place else ""
        needed = "" if field.required else "optional. "
        yield f"| `{field.name}`{place} | {field.type} | {_cell(f'{needed}{field.said}')} |"
    yield ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ").strip()


def _command() -> Iterator[str]:
    yield COMMAND_HEAD
    [commands] = [each for each in parser()._actions if isinstance(each, _SubParsersAction)]
    for name, command in commands.choices.items():
        yield f"## locipalace {name}\n"
        yield f"{command.description}\n"
        yield f"```text\n{_usage(command)}\n```\n"


def _usage(command: ArgumentParser) -> str:
    """Its help without the description, which stands above."""
    text = command.format_help()
    return text.replace(f"{command.description}\n\n", "").strip()
