"""The programs in examples/ do what they show, at a real server, with the real libraries."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path

import httpx2
import pytest
from django.contrib.auth.models import User

from palace.knowledge.facts import learn_unread
from palace.mining.pipeline import mine_rooms
from palace.models import Drawer, Palace, Room
from settings_app.api_keys import issue
from settings_app.models import MemorySettings
from tests.asgi_server import AsgiServer
from tests.config.conftest import PROJECT
from tests.model_server import Json

EXAMPLES = PROJECT / "examples"
GUIDES = sorted((PROJECT / "docs" / "guides").glob("*.md"))
TIMEOUT_S = 180
# What each needs. The first ones say one thing each time, the others store where somebody lives
# and ask at once.
ASKED_ONCE_MORE = {
    "openai_chat.py": "openai",
    "langchain_chat.py": "langchain_openai",
    "pydantic_ai_agent.py": "pydantic_ai",
}
# Their libraries alone take seconds to start.
HEAVY = {"langchain_chat.py", "pydantic_ai_agent.py", "langgraph_agent.py", "mem0_client.py"}
SAYS_AND_ASKS = {
    "langgraph_agent.py": "langgraph",
    "mcp_client.py": "mcp",
    "mem0_client.py": "mem0",
}

# `make clients` installs mem0 in a folder of its own.
MEM0 = PROJECT / ".loci" / "clients" / "mem0-2.2.1"

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def owner(db):
    return User.objects.create_user("owner")


@pytest.fixture
def loci(owner):
    """A running Loci, as the environment of a program names it."""
    _, key = issue(owner, "examples", scopes=["read", "write"])
    with AsgiServer() as server:
        yield {"LOCI_URL": server.url, "LOCI_API_KEY": key, "MEM0_TELEMETRY": "False"}


def with_the_heavy_apart(names):
    return [
        pytest.param(name, marks=pytest.mark.exhaustive if name in HEAVY else ()) for name in names
    ]


def run(loci, *command, **more):
    done = subprocess.run(
        command,
        cwd=EXAMPLES,
        env={**os.environ, "PYTHONPATH": str(PROJECT), **loci, **more},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def have_filed():
    """What the worker does once a conversation rests."""
    for palace in Palace.objects.all():
        mine_rooms(list(Room.objects.within(palace).select_related("palace", "wing")))
        learn_unread(palace)


@pytest.mark.parametrize("name", with_the_heavy_apart(ASKED_ONCE_MORE))
def test_it_remembers_what_was_said_the_last_time(loci, name):
    if find_spec(ASKED_ONCE_MORE[name]) is None:
        pytest.skip(f"{ASKED_ONCE_MORE[name]} is not installed.")
    run(loci, sys.executable, name, "I just moved to Lisbon.")
    assert Drawer.objects.filter(text="I just moved to Lisbon.").exists()
    have_filed()
    assert "Lisbon" in run(loci, sys.executable, name, "Where do I live?")


@pytest.mark.parametrize("name", with_the_heavy_apart(SAYS_AND_ASKS))
def test_it_says_and_asks(loci, name):
    library = SAYS_AND_ASKS[name]
    if find_spec(library) is None and not (MEM0 / library).exists():
        pytest.skip(f"{library} is not installed.")
    path = os.pathsep.join(map(str, (PROJECT, MEM0)))
    assert "Lisbon" in run(loci, sys.executable, name, PYTHONPATH=path)


@pytest.fixture
def model(owner, model_server):
    """The owner has chosen the model that the test plays, for replies."""
    MemorySettings.objects.create(
        owner=owner, provider=model_server.base_url, model="played", uses=["replies"]
    )
    return model_server


@pytest.mark.exhaustive
def test_an_agent_remembers_between_two_runs(loci, model):
    def in_turn(request):
        """Calls its tool for the place that is in the memory."""
        *_, last = request.body["messages"]
        if last["role"] == "tool":
            return last["content"]
        return (
            calling(re.search(r"Lisbon", request.prompt)[0])
            if "weather" in last["content"]
            else "Noted."
        )

    model.answer(in_turn)
    said = run(loci, sys.executable, "openai_agents.py", "I just moved to Lisbon.")
    have_filed()
    said += run(loci, sys.executable, "openai_agents.py", "How is the weather where I live?")
    assert said.splitlines() == ["Noted.", "Rain in Lisbon."]


def calling(city):
    function = {"name": "weather", "arguments": json.dumps({"city": city})}
    call = {"id": "call-1", "type": "function", "function": function}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    return Json({"id": "1", "model": "m", "choices": [choice]})


class Telegram(BaseHTTPRequestHandler):
    """Its bot API, with two people's messages, one in a group."""

    updates: list
    sent: list

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        method = self.path.rsplit("/", 1)[1]
        if method == "sendMessage":
            self.sent.append((self.path, asked))
            result = {}
        else:
            result = [each for each in self.updates if each["update_id"] >= asked["offset"]]
        content = json.dumps({"ok": True, "result": result}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_arguments):
        pass


@pytest.fixture
def telegram():
    handler = type("Scripted", (Telegram,), {"updates": [], "sent": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=[0.05])
    thread.start()
    yield handler, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def update(number, person, text, kind="private"):
    chat = {"id": person, "type": kind}
    return {"update_id": number, "message": {"from": {"id": person}, "chat": chat, "text": text}}


@pytest.mark.exhaustive
def test_the_bot_keeps_people_apart(loci, model, telegram):
    handler, address = telegram
    model.answer(lambda request: f"Seen: {'Lisbon' in request.prompt}")
    handler.updates += [
        update(7, 1, "I just moved to Lisbon."),
        update(8, 1, "Where do I live?"),
        update(9, 2, "Where do I live?"),
        update(10, 3, "Where do they live?", "group"),
        {"update_id": 11},
    ]
    program = (
        "import telegram_bot as bot; offset = bot.answer_new_messages(0); "
        "print(offset, bot.answer_new_messages(offset))"
    )
    bot = (sys.executable, "-c", program)
    names = {"TELEGRAM_API": address, "TELEGRAM_TOKEN": "a:token"}
    assert run(loci, *bot, **names).split() == ["12", "12"]
    assert {path for path, _ in handler.sent} == {"/bota:token/sendMessage"}
    answers = [(fields["chat_id"], fields["text"]) for _, fields in handler.sent]
    assert answers == [(1, "Seen: True"), (1, "Seen: True"), (2, "Seen: False")]
    palaces = set(Palace.objects.values_list("subject", flat=True))
    assert palaces == {"telegram-1", "telegram-2"}
    texts = Drawer.objects.filter(palace__subject="telegram-1", role="user")
    assert texts.count() == 2, "The history that is sent along is stored once."

    # Started again, it has no history of its own.
    have_filed()
    handler.sent.clear()
    handler.updates[:] = [update(12, 1, "Do I live by the sea?"), update(13, 2, "And where am I?")]
    run(loci, *bot, **names)
    assert [fields["text"] for _, fields in handler.sent] == ["Seen: True", "Seen: False"]


def test_requests_of_the_workflow_work(loci):
    """Its expressions are JavaScript, which Node reads as n8n does."""
    if shutil.which("node") is None:
        pytest.skip("Node is not installed.")
    workflow = json.loads((EXAMPLES / "n8n" / "chat-with-memory.json").read_text())
    names = {node["name"] for node in workflow["nodes"]}
    assert set(workflow["connections"]) < names
    came = {"user": "ada", "session": "monday", "text": 'I just moved to Lisbon, it\'s "new".'}
    requests = {
        node["name"]: node["parameters"]
        for node in workflow["nodes"]
        if node["type"].endswith(".httpRequest")
    }
    for name in ("Remember", "Recall"):
        parameters = requests[name]
        expression = re.fullmatch(r"={{ (.*) }}", parameters["jsonBody"])[1]
        stub = f"const $ = () => ({{item: {{json: {{body: {json.dumps(came)}}}}}}}); "
        body = run({}, "node", "-e", f"{stub} console.log({expression})")
        answer = httpx2.request(
            parameters["method"],
            parameters["url"].replace("http://localhost:8000", loci["LOCI_URL"]),
            content=body,
            headers={
                "Authorization": f"Bearer {loci['LOCI_API_KEY']}",
                "Content-Type": "application/json",
            },
            timeout=TIMEOUT_S,
        )
        assert answer.status_code < 300, answer.text
    assert "Lisbon" in answer.json()["context"]


def test_the_ai_sdk_talks_to_it(loci):
    folder = EXAMPLES / "ai-sdk"
    if shutil.which("node") is None or not (folder / "node_modules" / "ai").exists():
        pytest.skip("`npm install` in examples/ai-sdk installs what it needs.")
    run(loci, "node", "ai-sdk/chat.mjs", "I just moved to Lisbon.")
    have_filed()
    assert "Lisbon" in run(loci, "node", "ai-sdk/chat.mjs", "Where do I live?")


@pytest.mark.parametrize("guide", GUIDES, ids=lambda guide: guide.stem)
def test_a_guide_shows_the_program_as_it_is(guide):
    shown = re.findall(r"<!-- example: (.*?) -->\n```\w+\n(.*?)```", guide.read_text(), re.DOTALL)
    for path, text in shown:
        assert text == (PROJECT / path).read_text(), path


def test_every_example_is_listed_and_tried():
    listed = set(
        re.findall(r"\]\(([\w/.-]+\.(?:py|mjs|json))\)", (EXAMPLES / "README.md").read_text())
    )
    there = {
        str(path.relative_to(EXAMPLES))
        for kind in ("*.py", "*/*.mjs", "n8n/*.json")
        for path in EXAMPLES.glob(kind)
    }
    assert listed == there
    this = (PROJECT / "tests" / "test_examples.py").read_text()
    assert [name for name in there if Path(name).stem not in this] == []
