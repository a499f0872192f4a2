"""A full disk: a clear answer, which is kept under no key, and no error beside it."""

from __future__ import annotations

import errno
import json
import resource
from io import BytesIO

import httpx2
import pytest
from django.core.management import CommandError, call_command
from django.db import InternalError, connection, transaction
from django.urls import reverse

from api.rest.problems import problem_of
from llm.models import CachedEmbedding
from palace.knowledge.facts.fact_learning import CHUNK
from palace.models import (
    Drawer,
    Fact,
    IdempotentWrite,
    Palace,
    Passage,
    RecollectionTrace,
)
from settings_app.api_keys import ApiKey, issue
from settings_app.models import AuditLine, MemorySettings
from tests.api.rest.conftest import client_of
from tests.asgi_server import AsgiServer

TURN = {"session_id": "s", "messages": [{"role": "user", "content": "Nora lives in Lisbon."}]}
ONCE = {"Idempotency-Key": "once"}

FULL = """
    CREATE FUNCTION no_space_left() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100';
    END $$
"""


@pytest.fixture
def fill_up(db):
    """Makes the database answer to writes into these tables as it does with a full disk."""
    with connection.cursor() as cursor:
        cursor.execute(FULL)

    def fill(*models, events="INSERT OR UPDATE OR DELETE"):
        with connection.cursor() as cursor:
            for model in models:
                table = model._meta.db_table
                cursor.execute(
                    f"CREATE TRIGGER full_{table} BEFORE {events} ON {table}"
                    " FOR EACH STATEMENT EXECUTE FUNCTION no_space_left()"
                )

    return fill


def free_up(*models):
    with connection.cursor() as cursor:
        for model in models:
            table = model._meta.db_table
            cursor.execute(f"DROP TRIGGER full_{table} ON {table}")


def test_a_command_says_so_in_a_sentence(owner, fill_up):
    fill_up(ApiKey)
    with pytest.raises(CommandError, match="No space left on device"):
        call_command("api_key")


def test_a_write_gets_507_and_can_be_repeated(owner, fill_up):
    client = client_of(owner)
    fill_up(Drawer)
    refused = client.post("/turns", TURN, headers=ONCE)
    assert refused.status_code == 507
    assert refused.data["code"] == "storage_full"
    assert refused.headers["Content-Type"] == "application/problem+json"
    assert refused.headers["Retry-After"] == "60"
    assert IdempotentWrite.objects.get().status is None
    free_up(Drawer)
    assert client.post("/turns", TURN, headers=ONCE).status_code == 201


@pytest.mark.parametrize("path", ["/turns", "/v1/memories/"])
def test_nothing_that_is_noted_along_with_a_write_fails_it(owner, fill_up, path):
    body = TURN if path == "/turns" else {"user_id": "ada", "messages": "I moved to Lisbon."}
    client = client_of(owner)
    fill_up(AuditLine, ApiKey)
    assert client.post(path, body).status_code in (200, 201)
    assert not AuditLine.objects.exists()


def test_reading_goes_on(owner, fill_up):
    client = client_of(owner)
    assert client.post("/turns", TURN).status_code == 201
    fill_up(AuditLine, ApiKey, Drawer, RecollectionTrace)
    assert client.get("/users/ada/memories").status_code == 200
    found = client.post("/recall", {"query": "Where does Nora live?"})
    assert found.status_code == 200
    assert "Lisbon" in found.data["context"]


@pytest.mark.parametrize("full", [Passage, Fact, CachedEmbedding])
@pytest.mark.parametrize("path", ["/turns", "/v1/memories/"])
def test_what_is_stored_is_not_reported_as_failed(owner, fill_up, path, full):
    said = "I moved to Lisbon."
    turn = {**TURN, "messages": [{"role": "user", "content": said}]}
    body = turn if path == "/turns" else {"user_id": "ada", "messages": said}
    fill_up(full)
    answer = client_of(owner).post(path, body)
    assert answer.status_code in (200, 201), answer.content
    assert Drawer.objects.count() == 1
    is_behind = full is Fact or (full is Passage and path == "/turns")
    assert (answer.json().get("extraction") == "degraded") == is_behind


def test_facts_that_were_stored_before_it_was_full_are_answered(owner):
    with connection.cursor() as cursor:
        cursor.execute(FULL)
        cursor.execute(
            "CREATE TRIGGER full_later BEFORE INSERT ON palace_fact FOR EACH ROW"
            " WHEN (NEW.text LIKE '%Porto%') EXECUTE FUNCTION no_space_left()"
        )
    # What is read at once is stored at once.
    said = ["I have a cat called Miso.", *["It rains."] * (CHUNK - 1), "I moved to Porto."]
    messages = [{"role": "user", "content": content} for content in said]
    answer = client_of(owner).post("/v1/memories/", {"user_id": "ada", "messages": messages})
    stored = [result["new_memory"] for result in answer.json()["results"]]
    assert stored == [Fact.objects.get().text]
    assert answer.json()["extraction"] == "degraded"
    assert Drawer.objects.count() == len(said)


def test_a_response_that_cannot_be_kept_is_given_all_the_same(owner, fill_up):
    client = client_of(owner)
    fill_up(IdempotentWrite, events="UPDATE")
    assert client.post("/turns", TURN, headers=ONCE).status_code == 201
    assert IdempotentWrite.objects.get().status is None


def test_a_page_says_so(client, owner, fill_up):
    client.force_login(owner)
    client.raise_request_exception = False
    fill_up(MemorySettings)
    page = client.post(reverse("account"), {"do": "time_zone", "time_zone": "Europe/Berlin"})
    assert page.status_code == 507
    assert "disk is full" in page.text


@pytest.fixture
def no_room_for_bodies():
    """This process may write no file longer than 3 MB, which cuts off what Django spools."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (3 << 20, before[1]))

    yield limit
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


# Django does not close the file that it cannot write.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_body_that_cannot_be_spooled_gets_507(transactional_db, alice, no_room_for_bodies):
    _, key = issue(alice, "a program")
    body = json.dumps({**TURN, "messages": [{"role": "user", "content": "x y " * 1_200_000}]})
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json", **ONCE}
    with AsgiServer() as server:
        no_room_for_bodies()
        refused = httpx2.post(f"{server.url}/turns", content=body, headers=headers, timeout=60)
    assert refused.status_code == 507
    assert refused.json()["code"] == "storage_full"
    assert not IdempotentWrite.objects.exists()


@pytest.mark.parametrize("name", ["ENOSPC", "EDQUOT", "EFBIG", "EROFS"])
def test_a_disk_that_takes_nothing_more_gets_507(name):
    problem = problem_of(OSError(getattr(errno, name), "No"))
    assert (problem.status_code, problem.code) == (507, "storage_full")
    assert problem_of(OSError(errno.EACCES, "No")) is None


def test_a_body_that_was_cut_off_is_not_taken_for_bad_json(program):
    text = json.dumps(TURN)
    left = {"wsgi.input": BytesIO(text[:-20].encode())}
    cut = program.generic("POST", "/turns", text, "application/json", headers=ONCE, **left)
    assert cut.status_code == 507
    assert cut.data["code"] == "storage_full"
    assert not IdempotentWrite.objects.exists()
    assert program.post("/turns", TURN, headers=ONCE).status_code == 201


def test_a_database_that_only_reads_is_no_fault_of_ours(db):
    """As where another server has become the primary."""
    with connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION READ ONLY")
    with pytest.raises(InternalError) as refused, transaction.atomic():
        Palace.objects.create(owner_id=1)
    problem = problem_of(refused.value)
    assert (problem.status_code, problem.code) == (503, "database_unavailable")
    assert "Retry-After" in problem.headers
