"""What README shows programs to do is done, at a real server with a real key."""

from __future__ import annotations

import json
import re
import shutil
import subprocess

import anyio
import httpx2
import pytest
from django.contrib.auth.models import User
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from palace.models import Drawer
from settings_app.api_keys import issue
from tests.asgi_server import AsgiServer
from tests.config.conftest import PROJECT

ADDRESS = "http://localhost:8000"
SECTION = (PROJECT / "README.md").read_text().split("## For programs")[1].split("\n## ")[0]
SHELL, CLIENT, MCP, PROXY = re.findall(r"```\w+\n(.*?)```", SECTION, re.DOTALL)

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def key(monkeypatch):
    _, text = issue(User.objects.create_user("owner"), "README", scopes=["read", "write", "admin"])
    monkeypatch.setenv("LOCI_API_KEY", text)
    return text


@pytest.fixture
def at(key):
    """A snippet, at the address of this test's server."""
    with AsgiServer() as server:
        yield lambda snippet: snippet.replace(ADDRESS, server.url)


@pytest.mark.skipif(not shutil.which("curl"), reason="curl is not installed.")
def test_rest(at):
    done = subprocess.run(
        ["sh", "-ec", at(SHELL)], capture_output=True, text=True, check=True, timeout=180
    )
    stored, recalled = done.stdout.split("}{")
    assert json.loads(stored + "}")["extraction"] == "complete"
    assert "Lisbon" in json.loads("{" + recalled)["context"]


def test_the_client(at, capsys):
    names = {}
    exec(at(CLIENT), names)  # noqa: S102
    names["memory"].close()
    assert "walnuts" in capsys.readouterr().out


def test_mcp(at, key):
    server = json.loads(at(MCP).replace("${LOCI_API_KEY}", key))["mcpServers"]["loci"]

    async def tools():
        async with (
            httpx2.AsyncClient(headers=server["headers"]) as http,
            Client(streamable_http_client(server["url"], http_client=http)) as client,
        ):
            return await client.list_tools()

    assert {"recall", "remember"} <= {tool.name for tool in anyio.run(tools).tools}


def test_the_proxy(at, capsys):
    names = {}
    exec(at(PROXY), names)  # noqa: S102
    names["client"].close()
    assert capsys.readouterr().out.strip()
    assert Drawer.objects.filter(text__contains="spare key").exists()
