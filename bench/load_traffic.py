"""The traffic, as `locust` runs it in an environment of its own: nothing of Loci is there.

The settings are in the JSON file that LOAD_SETTINGS names; each answer is a line of the file
`answers` there: kind, seconds since the start, milliseconds, status, whether Retry-After was sent.
"""

from __future__ import annotations

import io
import json
import os
import random
import time
from pathlib import Path
from typing import Any
from uuid import uuid4

from locust import FastHttpUser, constant_throughput, events, task

SETTINGS: dict[str, Any] = json.loads(Path(os.environ["LOAD_SETTINGS"]).read_text())
HEADERS = {"Authorization": f"Bearer {SETTINGS['key']}"}
COOKIES = {"Cookie": SETTINGS["cookies"]}
FORM = {**COOKIES, "X-CSRFToken": SETTINGS["csrf"]}
PAGES = ("/memory/", "/chat/", "/memory/facts/", "/memory/?q=ferry", "/settings/keys/")
# Between two requests of one user. A rate of 0 is as fast as answers come.
EVERY_S = SETTINGS["users"] / SETTINGS["rate"] if SETTINGS["rate"] else 0.0
IMPORTED = 60

_began = time.time()
_answers = Path(SETTINGS["answers"]).open("a", buffering=1)  # noqa: SIM115 - until the end.


@events.request.add_listener
def _note(name: str, response_time: float, response: Any = None, **_more: Any) -> None:
    # Without an answer, such as after a timeout, there is no status.
    status = getattr(response, "status_code", 0) or 0
    later = bool(status and "retry-after" in {each.lower() for each in response.headers})
    at = round(time.time() - _began, 3)
    _answers.write(json.dumps([name, at, round(response_time, 1), status, later]) + "\n")


class Anyone(FastHttpUser):
    """Programs that recall, write and chat for one of some people, and a person who opens pages.

    Each user does all of it, so that those who ask without a pause ask as often for what takes long
    as those with a pace.
    """

    host = SETTINGS["address"]
    network_timeout = connection_timeout = SETTINGS["timeout_s"]

    def on_start(self) -> None:
        self.draw = random.Random()  # noqa: S311 - who asks what, no secret.
        self.said = 0
        # Not all at the same moment.
        time.sleep(self.draw.uniform(0, EVERY_S))
        self.due = time.monotonic()

    def wait_time(self) -> float:
        """Seconds until the next request is due, 0 where an answer took longer than that.

        Not `constant_throughput`, whose first wait is counted from the moment at which all users
        were made: it would undo their different starts, and all would ask together.
        """
        now = time.monotonic()
        self.due = max(self.due + EVERY_S, now)
        return self.due - now

    def someone(self) -> str:
        return f"load-{self.draw.randrange(SETTINGS['palaces'])}"

    @task(42)
    def recall(self) -> None:
        asked = {"query": "When does the ferry leave?", "user_id": self.someone()}
        self.client.post("/recall", json=asked, headers=HEADERS, name="recall")

    @task(14)
    def write(self) -> None:
        self.said += 1
        body = {
            "user_id": self.someone(),
            "session_id": str(uuid4()),
            "messages": [{"role": "user", "content": f"Note {self.said}: the ferry is late."}],
        }
        self.client.post("/turns", json=body, headers=HEADERS, name="turns")

    @task(7)
    def chat(self) -> None:
        said = {"role": "user", "content": "When does the ferry leave?"}
        headers = {**HEADERS, "X-Loci-User": self.someone()}
        body = {"model": "loci", "messages": [said]}
        self.client.post("/v1/chat/completions", json=body, headers=headers, name="chat")

    @task(27)
    def page(self) -> None:
        path = self.draw.choice(PAGES)
        self.client.get(path, headers=COOKIES, name="pages", allow_redirects=False)


class Importer(FastHttpUser):
    """One person, who imports file after file."""

    fixed_count = 1
    host = SETTINGS["address"]
    network_timeout = connection_timeout = SETTINGS["timeout_s"]
    wait_time = constant_throughput(SETTINGS["imports_per_s"])

    @task
    def upload(self) -> None:
        lines = [
            json.dumps({"id": str(uuid4()), "messages": [_message(number) for number in range(10)]})
            for _ in range(IMPORTED // 10)
        ]
        talk = io.BytesIO("\n".join(lines).encode())
        files = {"file": (f"{uuid4()}.jsonl", talk, "application/jsonl")}
        options = {"headers": FORM, "name": "imports", "allow_redirects": False}
        found = self.client.post("/memory/import/", files=files, **options)
        if found.status_code == 302:
            self.client.post(f"{found.headers['Location']}start/", data={}, **options)


def _message(number: int) -> dict[str, str]:
    return {
        "role": "user",
        "text": f"{uuid4()} the ferry number {number} leaves at nine.",
        "said_at": "2026-01-01T09:00:00+00:00",
    }
