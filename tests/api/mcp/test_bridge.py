"""`locipalace mcp`, started by the official client as assistants start it, and a running Loci."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import anyio
import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.shared.exceptions import MCPError

from settings_app.api_keys import issue
from tests.config.conftest import PROJECT

PROGRAM = [sys.executable, str(PROJECT / "locipalace"), "mcp"]
SAID = "I moved to Lisbon.\r\n\t Tomé 🌊 "


@pytest.fixture
def home(tmp_path):
    return tmp_path / "home"


@pytest.fixture
def environment(home):
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LOCI_")}
    return {**kept, "LOCI_HOME": str(home)}


def profile(home, url, key):
    home.mkdir()
    (home / "client.json").write_text(json.dumps({"key": key}))
    (home / "run.lock").write_text(json.dumps({"pid": 1, "address": f"{url}/"}))


def talk_to(environment, talk, mode="auto"):
    async def whole():
        server = StdioServerParameters(command=PROGRAM[0], args=PROGRAM[1:], env=environment)
        async with Client(server, mode=mode) as client:
            return await talk(client)

    return anyio.run(whole)


def ask(environment, *lines):
    """What the program writes for these lines, by id."""
    done = subprocess.run(
        PROGRAM,
        input="".join(f"{line}\n" for line in lines),
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stderr == ""
    return {answer["id"]: answer for answer in map(json.loads, done.stdout.splitlines())}


@pytest.mark.some(1)
@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_an_assistant_has_the_palace(door, owner, environment, home, mode):
    _, key = issue(owner, "an assistant")
    profile(home, door.url.removesuffix("/mcp"), key)

    async def talk(client):
        kept = await client.call_tool("remember", {"messages": [{"content": SAID}]})
        [drawer] = kept.structured_content["drawers"]
        read = await client.read_resource(f"loci://drawer/{drawer['uuid']}")
        assert read.contents[0].text == SAID
        async with anyio.create_task_group() as group:
            for _ in range(5):
                group.start_soon(client.call_tool, "recall", {"query": "Where does he live?"})
        refused = await client.call_tool("recall", {"query": " "})
        assert refused.is_error
        with pytest.raises(MCPError, match="There is no tool"):
            await client.call_tool("nothing", {})
        return (await client.list_tools()).tools

    assert len(talk_to(environment, talk, mode)) == 16


def test_variables_go_before_the_profile(door, owner, environment, home):
    _, key = issue(owner, "an assistant", scopes=["read"])
    profile(home, "http://127.0.0.1:9", "loci_of_another_server")
    environment |= {"LOCI_URL": door.url.removesuffix("/mcp"), "LOCI_API_KEY": key}

    async def talk(client):
        return [tool.name for tool in (await client.list_tools()).tools]

    assert "remember" not in talk_to(environment, talk)


INITIALIZE = json.dumps(
    {
        "jsonrpc": "2.0",
        "id": 0,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "a client", "version": "1"},
        },
    }
)


def test_without_loci_it_says_how_to_start_it(environment, home):
    profile(home, "http://127.0.0.1:9", "loci_key")
    said = ask(environment, INITIALIZE)[0]["error"]["message"]
    assert "does not answer at http://127.0.0.1:9. Start it with `make run`" in said
    (home / "run.lock").write_text("")
    assert "Loci is not running" in ask(environment, INITIALIZE)[0]["error"]["message"]


@pytest.mark.some(1)
@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_an_assistant_that_starts_first_has_its_tools_once_loci_runs(
    door, owner, environment, home, mode
):
    url = door.url.removesuffix("/mcp")
    _, key = issue(owner, "an assistant")
    profile(home, url, key)

    async def list_all(client):
        tools = (await client.list_tools()).tools
        return tools, (await client.list_prompts()).prompts

    before = talk_to(environment, list_all, mode)
    running = (home / "run.lock").read_text()
    (home / "run.lock").write_text("")

    async def talk(client):
        assert await list_all(client) == before
        with pytest.raises(MCPError, match="Loci is not running"):
            await client.call_tool("recall", {"query": "Where?"})
        (home / "run.lock").write_text(running)
        recalled = await client.call_tool("recall", {"query": "Where?"})
        assert not recalled.is_error

    talk_to(environment, talk, mode)


@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        ({}, "connect CLIENT --yes"),
        ({"LOCI_URL": "http://127.0.0.1:9"}, "no LOCI_API_KEY"),
        ({"LOCI_URL": "ftp://x", "LOCI_API_KEY": "loci_x"}, "LOCI_URL is an address"),
        ({"LOCI_URL": "http://127.0.0.1:9", "LOCI_API_KEY": "loci x\r\n"}, "Copy it again"),
    ],
)
def test_what_is_missing_is_said(environment, variables, sentence):
    answer = ask(environment | variables, INITIALIZE)[0]
    assert sentence in answer["error"]["message"]


def test_a_key_that_is_refused_is_said(door, environment, home):
    profile(home, door.url.removesuffix("/mcp"), "loci_revoked")
    error = ask(environment, INITIALIZE)[0]["error"]
    assert "--new-key" in error["message"]
    assert error["data"]["code"] == "bad_key"


def test_lines_that_are_no_requests(environment):
    answers = ask(
        environment, "nonsense", json.dumps({"jsonrpc": "2.0", "method": "notifications/x"}), ""
    )
    assert [answer["error"]["code"] for answer in answers.values()] == [-32700]
    assert ask(environment, "[]")[None]["error"]["code"] == -32600
    assert ask(environment, "[" * 100_000)[None]["error"]["code"] == -32700
    odd = json.dumps({"jsonrpc": "2.0", "id": 7, "method": ["tools/list"]})
    assert ask(environment, odd)[7]["error"]["code"] == -32600


def test_it_loads_next_to_nothing(environment):
    """Clients wait for its answer: what takes long to import belongs to the server."""
    code = (
        "import sys; sys.argv[1:] = ['mcp']\n"
        "from locipalace.cli.main import main; main()\n"
        "print({name.partition('.')[0] for name in sys.modules})"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=PROJECT,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    for heavy in ("django", "mcp", "httpx", "pydantic", "celery", "config", "palace"):
        assert f"'{heavy}'" not in done.stdout
