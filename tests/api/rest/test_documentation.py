"""docs/api.md has every address of the fact API and of working memory, and its commands work."""

from __future__ import annotations

import re
import shlex
from itertools import pairwise
from urllib.parse import urlsplit

import pytest
from django.urls import URLResolver

from api.urls import urlpatterns
from tests.config.conftest import PROJECT

PAGE = (PROJECT / "docs" / "api.md").read_text()
ROOMS = ("api.rest.facts", "api.rest.working_memory", "api.rest.memory_service")
ADDRESSES = [
    re.sub(r"<\w+:(\w+)>", r"{\1}", str(each.pattern))
    for door in urlpatterns
    if isinstance(door, URLResolver)
    for each in door.url_patterns
    if each.callback.__module__.startswith(ROOMS)
]


@pytest.mark.parametrize("address", ADDRESSES)
def test_every_address_is_documented(address):
    short = re.sub(r"^ledger/.*/(check|mark|evict)$", r"…/\1", address)
    assert f" /{address}`" in PAGE or f"/{address}`" in PAGE or f"`{short}`" in PAGE


@pytest.mark.django_db(transaction=True)
def test_its_commands_do_what_they_show(program):
    key = ""
    for command in re.findall(r"^curl .*?(?<!\\)$", PAGE, re.MULTILINE | re.DOTALL):
        answer = sent(program, command.replace("$ID", key))
        assert answer.status_code < 300, (command, answer.content)
        if isinstance(answer.data, dict) and answer.data.get("results"):
            key = str(answer.data["results"][0].get("id", key))


def sent(program, command):
    """What curl would send."""
    words = shlex.split(command.replace("\\\n", " "))
    [address] = [word for word in words if word.startswith("http://localhost:8000")]
    given = dict(pairwise(words))
    headers = {
        name: value
        for flag, text in pairwise(words)
        if flag == "-H" and not text.startswith("Authorization")
        for name, value in [text.split(": ")]
    }
    path = urlsplit(address)
    method = given.get("-X", "POST" if "-d" in given else "GET")
    content_type = headers.pop("Content-Type", "application/json")
    return program.generic(
        method,
        f"{path.path}?{path.query}",
        given.get("-d", ""),
        content_type=content_type,
        headers=headers,
    )
