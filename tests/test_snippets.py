"""What the documents show to type works: programs run, and commands have these options.

A block that cannot be run here is preceded by `<!-- not run: why -->`; one that a test of its own
runs by `<!-- run by: tests/… -->`.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import json
import re
import shlex
from dataclasses import dataclass

import pytest
from django.contrib.auth.models import User
from django.core.management import get_commands, load_command_class

from locipalace.cli.arguments import parser
from settings_app.api_keys import issue
from tests.asgi_server import AsgiServer
from tests.config.conftest import PROJECT

PAGES = [
    *(PROJECT / name for name in ("README.md", "CONTRIBUTING.md", "examples/README.md")),
    *sorted((PROJECT / "docs").glob("*.md")),
    *sorted((PROJECT / "docs" / "guides").glob("*.md")),
]
BLOCK = re.compile(r"(?:^<!-- ([^\n]*?) -->\n)?^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
# Programs of others, in lines of commands.
OTHERS = {"claude", "cp", "docker", "npm", "pip", "pipx", "uv"}


@dataclass(frozen=True, slots=True)
class Snippet:
    page: str
    mark: str
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}: {self.text.strip().splitlines()[0][:50]}"


SNIPPETS = [
    Snippet(str(page.relative_to(PROJECT)), mark, language, text)
    for page in PAGES
    for mark, language, text in BLOCK.findall(page.read_text())
]


def those(*languages):
    return [
        pytest.param(one, id=str(one))
        for one in SNIPPETS
        if one.language in languages
        and not one.mark.startswith(("not run:", "run by:", "example:"))
    ]


def test_programs_import_the_sdk_by_the_name_that_an_installed_loci_has():
    programs = [one for one in SNIPPETS if one.language == "python"]
    assert [
        str(one) for one in programs if re.search(r"\bimport palace|\bpalace\.sdk", one.text)
    ] == []


@pytest.mark.parametrize("snippet", SNIPPETS, ids=str)
def test_a_mark_is_true(snippet):
    kind, _, said = snippet.mark.partition(": ")
    if kind == "run by":
        test = (PROJECT / said).read_text()
        assert snippet.page.rsplit("/", 1)[-1] in test, "That test does not read this page."
    elif kind == "not run":
        assert len(said) > 5, "Say why."


@pytest.fixture
def here(transactional_db, monkeypatch, model_server):
    """A running Loci: what puts its address and a key into a program."""
    owner = User.objects.create_user("owner")
    _, key = issue(owner, "a reader", scopes=["read", "write", "admin"])
    monkeypatch.setenv("LOCI_API_KEY", key)
    with AsgiServer() as server:
        yield lambda text: text.replace("http://localhost:8000", server.url).replace("loci_…", key)


@pytest.mark.parametrize("snippet", those("python"))
def test_a_program_runs(snippet, here):
    program = here(snippet.text)
    code = compile(program, snippet.page, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    names = {}
    running = eval(code, names)  # noqa: S307
    if inspect.iscoroutine(running):
        asyncio.run(running)
    for name in ("client", "memory"):
        if hasattr(names.get(name), "close") and "with " not in program:
            names[name].close()


@pytest.mark.parametrize("snippet", those("json", "jsonl"))
def test_json_is_json(snippet):
    for text in snippet.text.splitlines() if snippet.language == "jsonl" else [snippet.text]:
        assert json.loads(text)


def commands_of(text):
    """The commands of a block, each as words: without comments, settings and files written to."""
    for line in text.replace("\\\n", " ").splitlines():
        command = []
        # What follows “>” is a file.
        words = shlex.split(re.sub(r" > \S+", "", line), comments=True)
        for word in [*words, "&&"]:
            if word in {"&&", "|"}:
                if command:
                    yield command
                command = []
            elif command or not re.fullmatch(r"[A-Z_]+=.*", word):
                command.append(word)


@pytest.mark.parametrize("snippet", those("sh"))
def test_a_command_has_these_options(snippet):
    commands = list(commands_of(snippet.text))
    assert commands
    for command in commands:
        check(command)


def check(command):
    program, *rest = command
    if program == "make":
        targets = re.findall(r"^([a-z-]+):", (PROJECT / "Makefile").read_text(), re.MULTILINE)
        assert rest[0] in targets, f"make {rest[0]}"
    elif program.startswith("."):
        check_file(program, rest)
    else:
        check_program(program, rest)


def check_file(program, rest):
    if rest[:1] == ["manage.py"]:
        check_manage(rest[1:])
    assert program == ".venv/bin/python" or (PROJECT / program).is_file()


def check_program(program, rest):
    if program == "export":
        inner = re.fullmatch(r"LOCI_API_KEY=\$\((.*)\)", " ".join(rest))
        check(shlex.split(inner[1]))
    elif program == "locipalace" and rest[:1] == ["manage"]:
        check_manage(rest[1:])
    elif program == "locipalace":
        parse(parser(), rest)
    elif program != "curl":
        assert program in OTHERS, f"Nobody knows whether this works: {program} {rest}"


def check_manage(words):
    name, *rest = words
    app = get_commands()[name]
    parse(load_command_class(app, name).create_parser("manage.py", name), rest)


def parse(of, words):
    try:
        of.parse_args(words)
    except SystemExit as ended:
        assert ended.code == 0, f"{of.prog} {shlex.join(words)}"  # noqa: PT017 - argparse exits.
