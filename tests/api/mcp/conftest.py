"""The official client, at Loci's own server."""

from __future__ import annotations

from contextlib import asynccontextmanager

import anyio
import httpx2
import pytest
from django.contrib.auth.models import User

from settings_app.api_keys import issue
from tests.asgi_server import AsgiServer

ALL = ("read", "write", "admin")


class Door:
    """The address of a server, and clients of it with keys of their own."""

    def __init__(self, url: str) -> None:
        self.url = f"{url}/mcp"

    def run(self, owner, talk, *, scopes=ALL, subject=None, mode="auto"):
        """What a talk with a client comes to: `await talk(client)`."""
        _, key = issue(owner, "an assistant", scopes=scopes, subject=subject)

        async def whole():
            async with self.client(key, mode) as client:
                return await talk(client)

        return anyio.run(whole)

    def call(self, owner, tool, arguments=None, **options):
        return self.run(owner, lambda client: client.call_tool(tool, arguments or {}), **options)

    @asynccontextmanager
    async def client(self, key, mode):
        # Not at the top: each process that collects tests would import them, for half a second.
        from mcp.client import Client  # noqa: PLC0415
        from mcp.client.streamable_http import streamable_http_client  # noqa: PLC0415

        headers = {"Authorization": f"Bearer {key}"}
        async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
            transport = streamable_http_client(self.url, http_client=http)
            async with Client(transport, mode=mode) as client:
                yield client


@pytest.fixture
def door(transactional_db):
    with AsgiServer() as server:
        yield Door(server.url)
        assert server.misplaced_queries == []


@pytest.fixture
def owner(transactional_db):
    return User.objects.create_user("owner")


@pytest.fixture
def stranger(transactional_db):
    return User.objects.create_user("stranger")
