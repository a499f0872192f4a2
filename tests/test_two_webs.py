"""Two webs and two workers behind one Postgres and one Redis, as on several machines.

Each web is a program with a port of its own, so that a test can say which of them it asks. One is
killed while both are written to, and started again.
"""

from __future__ import annotations

import socket
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from itertools import cycle

import httpx
import pytest
from django.contrib.auth import get_user_model

from palace.models import Drawer
from settings_app.api_keys import issue
from tests.polling import PATIENCE_S, until
from tests.test_killed_worker import kill, offer_work_until, spawn, spawn_worker  # noqa: F401

HOST = "127.0.0.1"
NAMES = ("ada", "bea", "cleo")
PASSWORD = "a-password-of-ada"
# Messages that are accepted before one web is killed, and while it is away.
BEFORE, MEANWHILE = 12, 12
RATE = 10_000


class Web:
    def __init__(self, spawn, log):  # noqa: F811 - the fixture.
        with socket.create_server((HOST, 0)) as free:
            self._port = free.getsockname()[1]
        self.url = f"http://{HOST}:{self._port}"
        self.log, self._spawn = log, spawn

    def start(self):
        command = ["uvicorn", "config.asgi:application", "--lifespan", "off", "--host", HOST]
        limits = {"LOCI_API_RATE": f"{RATE}/hour", "LOCI_DB_POOL": "10"}
        with self.log.open("ab") as output:
            options = {"output": output, **limits}
            self._program = self._spawn(*command, "--port", str(self._port), **options)

    def kill(self):
        kill(self._program)

    def listens(self):
        with socket.socket() as trial:
            return trial.connect_ex((HOST, self._port)) == 0


@pytest.fixture
def webs(transactional_db, spawn, spawn_worker, tmp_path):  # noqa: F811
    both = [Web(spawn, tmp_path / f"{name}.log") for name in ("one", "other")]
    for web in both:
        web.start()
    spawn_worker()
    spawn_worker()
    for web in both:
        until(web.listens)
    return both


@pytest.fixture
def people(transactional_db):
    return [get_user_model().objects.create_user(name) for name in NAMES]


@contextmanager
def program_of(owner):
    _, key = issue(owner, "a program")
    headers = {"Authorization": f"Bearer {key}"}
    with httpx.Client(headers=headers, timeout=PATIENCE_S, trust_env=False) as client:
        yield client


class Writer:
    """An account's program: it sends each message until a web acknowledges it, and looks it up at
    the next one.
    """

    def __init__(self, client, name, webs):
        self._client, self._name, self._webs = client, name, cycle(webs)
        self.accepted = []
        self.unanswered = 0
        self._over = threading.Event()

    def write(self):
        while not self._over.is_set():
            code = f"{self._name}{len(self.accepted)}x"
            text = f"The parcel {code} goes to Porto."
            path, body = self._request(text)
            accepted = self._until_answered(path, body, {"Idempotency-Key": code})
            self.accepted.append(text)
            if path == "/turns" and accepted.json()["extraction"] == "complete":
                asked = {"query": f"Where does the parcel {code} go?"}
                assert text in self._until_answered("/recall", asked).json()["context"]

    def stop(self):
        self._over.set()

    def _request(self, text):
        if len(self.accepted) % 3 == 2:
            return "/v1/memories/", {"user_id": self._name, "messages": text}
        messages = [{"role": "user", "content": text}]
        return "/turns", {"session_id": "parcels", "messages": messages}

    def _until_answered(self, path, body, headers=None):
        answers = []

        def is_answered():
            try:
                answer = self._client.post(
                    next(self._webs).url + path, json=body, headers=headers or {}
                )
            except httpx.TransportError:
                self.unanswered += 1
                return False
            # What a killed web had begun is begun again by the other one ten seconds later.
            assert answer.status_code in (200, 201, 409, 503), answer.text
            answers.append(answer)
            return answer.is_success

        until(is_answered)
        return answers[-1]


def texts_of(owner):
    return Counter(Drawer.objects.filter(palace__owner=owner).values_list("text", flat=True))


@pytest.mark.lengthy
@pytest.mark.exhaustive
def test_what_either_web_acknowledges_is_there_once_though_one_is_killed(webs, people):
    one, other = webs
    with ExitStack() as open_programs:
        writers = [
            Writer(open_programs.enter_context(program_of(person)), person.username, webs)
            for person in people
        ]

        def accepted():
            return sum(len(writer.accepted) for writer in writers)

        with ThreadPoolExecutor(len(writers)) as pool:
            writing = [pool.submit(writer.write) for writer in writers]

            def has_accepted(number):
                return accepted() >= number or any(each.done() for each in writing)

            try:
                until(lambda: has_accepted(BEFORE))
                other.kill()
                so_far = accepted()
                until(lambda: has_accepted(so_far + MEANWHILE))
                other.start()
                until(other.listens)
            finally:
                for writer in writers:
                    writer.stop()
        for each in writing:
            each.result()
    assert sum(writer.unanswered for writer in writers), "Nobody noticed that it was killed."
    for person, writer in zip(people, writers, strict=True):
        assert texts_of(person) == dict.fromkeys(writer.accepted, 1)
    offer_work_until(lambda: not Drawer.objects.unmined().exists())
    offer_work_until(lambda: not Drawer.objects.unread().exists())
    for web in (one, other):
        assert "Traceback" not in web.log.read_text()


def signs_in(web, browser):
    browser.get(f"{web.url}/sign-in/")
    form = {"username": NAMES[0], "password": PASSWORD}
    form["csrfmiddlewaretoken"] = browser.cookies["csrftoken"]
    return browser.post(f"{web.url}/sign-in/", data=form).status_code == 302


def is_signed_in(web, browser):
    page = browser.get(f"{web.url}/memory/")
    assert page.status_code in (200, 302), page.text
    return page.status_code == 200


@pytest.mark.lengthy
@pytest.mark.exhaustive
def test_both_webs_know_the_same(webs, people, settings):
    # The webs take no quick passwords.
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.PBKDF2PasswordHasher"]
    ada, bea, _ = people
    ada.set_password(PASSWORD)
    ada.save()
    with program_of(ada) as adas, program_of(bea) as beas, httpx.Client(trust_env=False) as browser:
        stores_once_under_one_key(webs, adas, ada)
        shows_a_stranger_nothing(webs, adas, beas, ada)
        counts_a_key_once(webs, ada)
        knows_a_session(webs, browser)


def stores_once_under_one_key(webs, program, owner):
    """Both are sent the same at the same moment."""
    texts = [f"The parcel {number} goes to Porto." for number in range(5)]

    def send(web, text):
        turn = {"session_id": "parcels", "messages": [{"role": "user", "content": text}]}
        return program.post(f"{web.url}/turns", json=turn, headers={"Idempotency-Key": text})

    with ThreadPoolExecutor(2) as pool:
        for text in texts:
            first = list(pool.map(lambda web, text=text: send(web, text), webs))
            statuses = {answer.status_code for answer in first}
            assert 201 in statuses
            assert statuses <= {201, 409}
            again = [send(web, text) for web in webs]
            assert again[0].json() == again[1].json()
            assert again[0].json() in [answer.json() for answer in first]
            assert all(answer.headers["Idempotency-Replayed"] == "true" for answer in again)
    assert texts_of(owner) == dict.fromkeys(texts, 1)


def shows_a_stranger_nothing(webs, owner, stranger, person):
    uuids = Drawer.objects.filter(palace__owner=person).values_list("uuid", flat=True)
    for web in webs:
        for uuid in uuids:
            address = f"{web.url}/v1/drawers/{uuid}/"
            assert owner.get(address).status_code == 200
            assert stranger.get(address).status_code == 404
            assert stranger.delete(address).status_code == 404
    assert not Drawer.objects.trashed().exists()


def counts_a_key_once(webs, owner):
    with program_of(owner) as program:
        answers = [program.get(f"{web.url}/v1/webhooks/") for web in webs * 2]
    left = [int(answer.headers["RateLimit-Remaining"]) for answer in answers]
    assert left == [RATE - 1, RATE - 2, RATE - 3, RATE - 4]


def knows_a_session(webs, browser):
    one, other = webs
    assert not is_signed_in(one, browser)
    assert signs_in(one, browser)
    assert is_signed_in(other, browser)
    form = {"csrfmiddlewaretoken": browser.cookies["csrftoken"]}
    # The cookie of somebody who kept it: signing out takes it from this browser.
    kept = browser.cookies["sessionid"]
    assert browser.post(f"{other.url}/sign-out/", data=form).status_code == 302
    browser.cookies.set("sessionid", kept, domain=HOST)
    assert not is_signed_in(one, browser)
