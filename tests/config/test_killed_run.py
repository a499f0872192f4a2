"""Programs write while web, worker and `manage.py run` are killed: nothing is lost or doubled."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import random
import signal
import threading
from collections import Counter
from itertools import chain
from urllib.parse import urlsplit

import psutil
import pytest

from tests.config.test_run import Terminal
from tests.polling import wait_until

KILLS = 10
WRITERS = 3
# What is killed: a process whose command has these words, or all of `manage.py run`.
WEB, WORKER, RUN = "uvicorn", "-A config worker", "manage.py run"
# All of it last: it is killed and started again, so the pauses before a restart are short again.
ROUND = (WEB, WORKER) * 2
# Messages accepted between two kills, at most.
MOST_BETWEEN = 12
CITIES = ("Porto", "Lisbon", "Vienna", "Oslo", "Dublin", "Prague", "Athens")


class Server:
    """The house's server, asked with a key. A request has one try."""

    def __init__(self, port: int, key: str) -> None:
        self._port = port
        self._headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}

    def ask(self, method, path, body=None):
        """Status and JSON; None where the answer is lost."""
        with contextlib.closing(
            http.client.HTTPConnection("127.0.0.1", self._port, timeout=90)
        ) as connection:
            try:
                sent = None if body is None else json.dumps(body)
                connection.request(method, path, sent, self._headers)
                response = connection.getresponse()
                return response.status, json.loads(response.read())
            except (OSError, http.client.HTTPException, ValueError):
                return None

    def texts(self, user):
        """Of all the user's drawers."""
        found, path = [], f"/v1/drawers/?user_id={user}"
        while path:
            status, page = self.ask("GET", path)
            assert status == 200, page
            found += [drawer["text"] for drawer in page["results"]]
            following = urlsplit(page["next"] or "")
            path = following.path and f"{following.path}?{following.query}"
        return found


class Writer:
    """Sends one message after the other, each once, whatever comes of it."""

    def __init__(self, server: Server, user: str) -> None:
        self.user, self._server = user, server
        self.accepted: list[str] = []
        self.unanswered: list[str] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._write)
        self._thread.start()

    def _write(self):
        number = 0
        while not self._stop.is_set():
            number += 1
            text = f"{self.user}, {number}: I live in {CITIES[number % len(CITIES)]}."
            answer = self._server.ask("POST", *self._request(number, text))
            if answer is not None and answer[0] in (200, 201):
                self.accepted.append(text)
            else:
                self.unanswered.append(text)
                self._stop.wait(0.2)

    def _request(self, number, text):
        if number % 3 == 0:
            return "/v1/memories/", {"user_id": self.user, "messages": text}
        messages = [{"role": "user", "content": text}]
        session = f"day {number // 10}"
        return "/turns", {"user_id": self.user, "session_id": session, "messages": messages}

    def stop(self):
        self._stop.set()
        self._thread.join()


def kill_one(house, words, draw):
    """One of the processes, at random: a worker has several."""
    with contextlib.suppress(psutil.Error, IndexError):
        found = [each for each in house.processes() if words in " ".join(each.cmdline())]
        draw.choice(found).kill()


@pytest.mark.lengthy
@pytest.mark.exhaustive
@pytest.mark.timeout(1800)
def test_after_ten_kills_every_accepted_message_is_there_once(house, free_port):
    house.environment |= {"LOCI_API_RATE": "", "LOCI_TAKE_UP_AFTER_S": "0"}
    terminal = Terminal(house, free_port)
    terminal.link()
    server = Server(free_port, house.manage("api_key").stdout.split()[-1])
    writers = [Writer(server, f"person{number}") for number in range(WRITERS)]

    def accepted():
        return sum(len(writer.accepted) for writer in writers)

    draw = random.Random(15)  # noqa: S311 - moments to kill at, no secret.
    rounds = [[*draw.sample(ROUND, len(ROUND)), RUN] for _ in range(KILLS // (len(ROUND) + 1))]
    try:
        for words in chain.from_iterable(rounds):
            enough = accepted() + draw.randint(1, MOST_BETWEEN)
            assert wait_until(lambda enough=enough: accepted() >= enough, 180), terminal.said
            if words != RUN:
                kill_one(house, words, draw)
                continue
            os.kill(terminal.pid, signal.SIGKILL)
            assert terminal.ends() == -signal.SIGKILL
            assert wait_until(lambda: house.names() == [], 30), house.names()
            terminal = Terminal(house, free_port)
            terminal.link()
    finally:
        for writer in writers:
            writer.stop()

    assert wait_until(lambda: server.ask("GET", "/health"), 120), terminal.said
    for writer in writers:
        counts = Counter(server.texts(writer.user))
        assert set(writer.accepted) <= set(counts), "Accepted, and lost."
        assert set(counts) <= {*writer.accepted, *writer.unanswered}
        assert set(counts.values()) == {1}
    assert "Traceback" not in terminal.said
    # Half is still queued, half is done.
    whole = house.manage("audit", "--all", check=False)
    assert whole.returncode == 0, whole.stdout
    terminal.press_ctrl_c()
    assert terminal.ends(180) == 0, terminal.said
    whole = house.manage("audit", "--all", check=False)
    assert whole.returncode == 0, whole.stdout
    print(f"{accepted()} messages accepted.", whole.stdout)  # noqa: T201
