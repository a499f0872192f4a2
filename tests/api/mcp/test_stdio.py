"""`manage.py mcp`, started by the official client as assistants start it."""

from __future__ import annotations

import os
import sys
from urllib.parse import quote

import anyio
import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import connection
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters

from palace.models import Drawer
from settings_app.api_keys import AuditLine

MANAGE = str(settings.BASE_DIR / "manage.py")


@pytest.fixture
def environment(transactional_db):
    """A process on the test's database."""
    address = "postgresql://postgres@{}/{}".format(
        quote(str(settings.EMBEDDED.sockets), safe=""), connection.settings_dict["NAME"]
    )
    return {
        **os.environ,
        "DATABASE_URL": address,
        "REDIS_URL": settings.REDIS_URL,
        "LOCI_SECRET_KEY": settings.SECRET_KEY,
    }


def test_an_assistant_on_this_machine_has_the_palace(environment, owner):
    is_opening = []

    async def note(message):
        is_opening.append(message)

    async def talk():
        command = [MANAGE, "mcp", "--owner", "owner", "--user-id", "ada"]
        server = StdioServerParameters(command=sys.executable, args=command, env=environment)
        async with Client(server, message_handler=note) as client:
            said = {"messages": [{"content": "I live in Lisbon."}], "conversation_id": "one"}
            kept = await client.call_tool("remember", said)
            assert not kept.is_error, kept.content
            recalled = await client.call_tool("recall", {"query": "Where do I live?"})
            assert "Lisbon" in recalled.structured_content["context"]
            elsewhere = await client.call_tool("recall", {"query": "x", "user_id": "ben"})
            assert elsewhere.meta["problem"]["code"] == "wrong_palace"

    anyio.run(talk)
    # A line that is no message would have been noticed, too.
    assert is_opening == []
    [palace] = owner.palaces.all()
    assert palace.subject == "ada"
    assert not AuditLine.objects.exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--owner", "nobody"], "There is no user with the name or address 'nobody'"),
        (["--owner", "owner", "--user-id", " "], "--user-id is blank"),
    ],
)
def test_who_cannot_be_meant_is_not_made(owner, arguments, sentence):
    with pytest.raises(CommandError, match=sentence):
        call_command("mcp", *arguments)
    assert User.objects.get() == owner


@pytest.mark.exhaustive
def test_with_the_queue_away_it_is_remembered_once(environment, owner, tmp_path):
    environment["REDIS_URL"] = f"unix://{tmp_path}/no-such-socket"
    said = {
        "messages": [{"content": "I live in Lisbon."}],
        "conversation_id": "one",
        "idempotency_key": "k",
    }

    async def talk():
        command = [MANAGE, "mcp", "--owner", "owner"]
        server = StdioServerParameters(command=sys.executable, args=command, env=environment)
        async with Client(server) as client:
            return [await client.call_tool("remember", said) for _ in range(2)]

    for kept in anyio.run(talk):
        assert not kept.is_error, kept.content
        assert len(kept.structured_content["drawers"]) == 1
    assert [drawer.text for drawer in Drawer.objects.all()] == ["I live in Lisbon."]
