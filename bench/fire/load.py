"""Mixed load: programs and a person who write, ask, import and export until they are stopped.

Every text is unique, so that each is one row of the ledger. What is sent under a key, and what
the chat's own form sends, is sent until it is acknowledged; all else is sent once, whatever
becomes of it.
"""

from __future__ import annotations

import io
import json
import math
import re
import threading
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import uuid4

import httpx

from bench.fire.proof import FACTS, KEYED, OWN, PLAIN, PROXY, Ledger, Words
from bench.fire.surroundings import NAMED, reply_to

TIMEOUT_S = 90
# A write that is not accepted for so long is a finding, and the run goes on.
INSISTS_S = 300
# Between two tries of the same write, and between two writes.
AGAIN_S, PAUSE_S = 0.5, 0.4
SESSION = 8
IMPORTED = 24
TOKEN = "t" * 32
CITIES = ("Porto", "Lisbon", "Vienna", "Oslo", "Dublin", "Prague", "Athens")
_BUSY = {408, 409, 425, 429}


@dataclass(slots=True)
class Client:
    """Requests with one try each.

    Attributes:
        answers: By status; 0 where the answer was lost.
    """

    client: httpx.Client
    answers: Counter[int] = field(default_factory=Counter)

    def ask(self, method: str, path: str, **what: object) -> httpx.Response | None:
        """None where the answer is lost."""
        try:
            answer = self.client.request(method, path, **what)  # type: ignore[arg-type]
        except httpx.TransportError:
            self.answers[0] += 1
            return None
        self.answers[answer.status_code] += 1
        return answer


def program(address: str, key: str) -> Client:
    headers = {"Authorization": f"Bearer {key}"}
    return Client(
        httpx.Client(base_url=address, headers=headers, timeout=TIMEOUT_S, trust_env=False)
    )


def person(address: str, link: str) -> Client:
    """Signed in by a link that works once."""
    client = httpx.Client(base_url=address, timeout=TIMEOUT_S, trust_env=False)
    client.get(link)
    client.cookies.set("csrftoken", TOKEN)
    client.headers["X-CSRFToken"] = TOKEN
    return Client(client)


class Load:
    """
    Args:
        address, key: Of the server, and of a program with every right.
        link: Signs the owner in.
    """

    def __init__(self, address: str, key: str, link: str) -> None:
        self.ledger = Ledger()
        self.wrong: list[str] = []
        self.exports = 0
        self._over = threading.Event()
        self._running: list[Future[None]] = []
        self._gives_up_at = math.inf
        self._key, self._address = key, address
        self._numbers: Counter[str] = Counter()
        self._numbering = threading.Lock()
        self._person = person(address, link)
        self._clients = [self._person]

    @contextmanager
    def under_way(self) -> Iterator[None]:
        """All of it, in threads, until the end of the block; an error of a thread is raised."""
        works = (self.keyed, self.plain, self.facts, self.proxied, self.chat, self.imports)
        with ThreadPoolExecutor(len(works) + 1) as pool:
            self._running = [pool.submit(self._repeat, work) for work in (*works, self.export)]
            try:
                yield
            finally:
                # What is under way has a while to be accepted.
                self._gives_up_at = time.monotonic() + TIMEOUT_S
                self._over.set()
        for work in self._running:
            work.result()

    def check(self) -> None:
        """Raise the error of a thread that has ended early."""
        for work in self._running:
            if work.done():
                work.result()

    def close(self) -> None:
        for client in self._clients:
            client.client.close()

    def answers(self) -> dict[str, int]:
        counted: Counter[int] = Counter()
        for client in self._clients:
            counted += client.answers
        return {str(status): count for status, count in sorted(counted.items())}

    def another_program(self, address: str = "") -> Client:
        """
        Args:
            address: Of the web that it asks; the installation's own unless given.
        """
        client = program(address or self._address, self._key)
        self._clients.append(client)
        return client

    def words(self, subject: str) -> Words:
        """The next message of that palace."""
        with self._numbering:
            self._numbers[subject] += 1
            number = self._numbers[subject]
        city = CITIES[number % len(CITIES)]
        return Words(
            subject, f"[fire {subject or 'owner'}-{number}] I live in {city} and keep bees."
        )

    def _repeat(self, work: Callable[[Client], None]) -> None:
        client = self.another_program()
        while not self._over.wait(PAUSE_S):
            work(client)

    def insist(self, send: Callable[[], httpx.Response | None], accepts: set[int]) -> bool:
        """Send it until it is accepted; False if it is refused, or time is up."""
        lasts_until = time.monotonic() + INSISTS_S
        while True:
            answer = send()
            if answer is not None and answer.status_code in accepts:
                return True
            if answer is not None and answer.is_client_error and answer.status_code not in _BUSY:
                self.wrong.append(_said(answer))
                return False
            if time.monotonic() > lasts_until:
                said = "no answer" if answer is None else _said(answer)
                self.wrong.append(f"Not accepted within {INSISTS_S} s; last: {said}")
                return False
            if time.monotonic() > self._gives_up_at:
                return False
            time.sleep(AGAIN_S)

    def keyed(self, client: Client) -> None:
        self.turn_until_accepted(client, self.words(KEYED))

    def turn_until_accepted(self, client: Client, *messages: Words) -> list[str]:
        """Send them as one turn; returns the ids of the drawers, or none if it was not accepted in
        time."""
        for words in messages:
            self.ledger.offer(words, until_accepted=True)
        drawers: list[str] = []
        headers = {"Idempotency-Key": str(uuid4())}
        body = _turn(*messages)

        def send() -> httpx.Response | None:
            answer = client.ask("POST", "/turns", json=body, headers=headers)
            if answer is not None and answer.status_code == 201:
                drawers.extend(answer.json()["drawers"])
            return answer

        if self.insist(send, {201}):
            self.ledger.accept_all(messages)
        else:
            for words in messages:
                self.ledger.give_up(words)
        return drawers

    def plain(self, client: Client) -> None:
        words = self.words(PLAIN)
        self.ledger.offer(words)
        answer = client.ask("POST", "/turns", json=_turn(words))
        if answer is not None and answer.status_code == 201:
            self.ledger.accept(words)

    def facts(self, client: Client) -> None:
        words = self.words(FACTS)
        self.ledger.offer(words, until_accepted=True)
        headers = {"Idempotency-Key": str(uuid4())}
        body = {"user_id": FACTS, "messages": words.text}
        if self.insist(
            lambda: client.ask("POST", "/v1/memories/", json=body, headers=headers), {200, 201}
        ):
            self.ledger.accept(words)
        else:
            self.ledger.give_up(words)

    def proxied(self, client: Client) -> None:
        """A program's chat through the proxy. The reply may be missing, but not there twice: it is
        not filed while the database is away, and the program has it and repeats it next time."""
        words = self.words(PROXY)
        self.ledger.offer(words)
        name = NAMED.findall(words.text)[0]
        conversation = f"talk {self._numbers[PROXY] // SESSION}"
        headers = {"X-Loci-User": PROXY, "X-Loci-Conversation": conversation}
        body = {"model": "loci", "messages": [{"role": "user", "content": words.text}]}
        self.ledger.offer(Words(PROXY, reply_to(name)))
        answer = client.ask("POST", "/v1/chat/completions", json=body, headers=headers)
        if answer is not None and answer.status_code == 200:
            self.ledger.accept(words)

    def chat(self, _client: Client) -> None:
        """A conversation of a few messages on the chat's page, each sent until it is accepted."""
        address = "/chat/"
        for _ in range(SESSION // 2):
            if self._over.wait(PAUSE_S):
                return
            found = self._say(address)
            if found is None:
                return
            if address == "/chat/":
                address = f"{found}say/"

    def _say(self, address: str) -> str | None:
        """Say something; returns the conversation's path."""
        words = self.words(OWN)
        self.ledger.offer(words, until_accepted=True)
        self.ledger.offer(Words(OWN, reply_to(NAMED.findall(words.text)[0])))
        form = {"key": str(uuid4()), "text": words.text}
        led_to: list[str] = []

        def send() -> httpx.Response | None:
            answer = self._person.ask("POST", address, data=form)
            if answer is not None and answer.status_code == 302:
                led_to.append(answer.headers["Location"].partition("#")[0].partition("?")[0])
            # The reply before is still being written.
            is_early = answer is not None and answer.status_code == 400
            return None if is_early else answer

        if not self.insist(send, {302}):
            self.ledger.give_up(words)
            return None
        self.ledger.accept(words)
        return led_to[-1]

    def imports(self, _client: Client) -> None:
        """Upload a file and start its import; then wait, so that imports do not pile up."""
        messages = [self.words(OWN) for _ in range(IMPORTED)]
        for words in messages:
            self.ledger.offer(words)
        name, content = f"talk-{uuid4()}.jsonl", _export_of(messages)
        found: list[str] = []

        def upload() -> httpx.Response | None:
            files = {"file": (name, content, "application/jsonl")}
            answer = self._person.ask("POST", "/memory/import/", files=files)
            if answer is not None and answer.status_code == 302:
                found.append(answer.headers["Location"])
            return answer

        if self.insist(upload, {302}) and self.insist(
            lambda: self._person.ask("POST", f"{found[-1]}start/"), {302}
        ):
            self.ledger.accept_all(messages)
        self._over.wait(12)

    def export(self, client: Client) -> None:
        """A whole download is a whole zip."""
        answer = client.ask("GET", "/v1/export", params={"user_id": KEYED})
        if answer is not None and answer.status_code == 200:
            with zipfile.ZipFile(io.BytesIO(answer.content)) as whole:
                if whole.testzip() is not None:
                    self.wrong.append("An export that came whole is damaged.")
            self.exports += 1
        self._over.wait(8)


def _turn(*messages: Words) -> dict[str, object]:
    """Messages of one palace, for one conversation."""
    number = int(messages[0].text.partition("]")[0].rpartition("-")[2])
    return {
        "user_id": messages[0].subject,
        "session_id": f"day {number // SESSION}",
        "messages": [{"role": "user", "content": words.text} for words in messages],
    }


def _export_of(messages: list[Words]) -> bytes:
    """A file to import: conversations as plain JSON Lines."""
    said_at = datetime.now(UTC).isoformat()
    lines = []
    for first in range(0, len(messages), SESSION):
        turns = [
            {"role": "user", "text": words.text, "said_at": said_at}
            for words in messages[first : first + SESSION]
        ]
        lines.append(json.dumps({"id": str(uuid4()), "messages": turns}))
    return "\n".join(lines).encode()


def _said(answer: httpx.Response) -> str:
    """Of a page, what stands in its body."""
    text = re.sub(r"(?s)^.*<main[^>]*>|<[^>]*>", " ", answer.text)
    asked = f"{answer.request.method} {answer.request.url.path}"
    return f"{asked}: {answer.status_code}: {' '.join(text.split())[:300]}"
