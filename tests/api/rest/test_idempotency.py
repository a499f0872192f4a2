"""A write that is sent again is not done again."""

from __future__ import annotations

import hashlib
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from api.rest import base
from palace.models import Drawer, IdempotentWrite
from palace.models.concurrency import is_held
from tests.api.rest.conftest import client_of
from tests.polling import until

TURN = {
    "session_id": "one",
    "messages": [{"role": "user", "content": "My cello is old."}],
}
OTHER = [{"role": "user", "content": "My flute is new."}]
AGAIN = {"HTTP_IDEMPOTENCY_KEY": "first"}

pytestmark = pytest.mark.django_db(transaction=True)


def test_it_is_answered_as_it_was(program):
    first = program.post("/turns", TURN, **AGAIN)
    second = program.post("/turns", TURN, **AGAIN)
    assert (first.status_code, second.status_code) == (201, 201)
    assert second.json() == first.json()
    assert second.headers["Idempotency-Replayed"] == "true"
    assert Drawer.objects.count() == 1


def test_what_was_asked_before_an_upgrade_is_answered_as_it_was_after_it(program):
    first = program.post("/turns", TURN, **AGAIN)
    # As version 0.6.0 wrote it, of the bytes of the body.
    IdempotentWrite.objects.update(fingerprint=hashlib.sha256(b"POST /turns").hexdigest())
    assert program.post("/turns", TURN, **AGAIN).json() == first.json()
    assert Drawer.objects.count() == 1


def test_a_body_larger_than_a_form_may_be_is_taken_as_well(program, settings):
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 60
    first = program.post("/turns", TURN, **AGAIN)
    assert first.status_code == 201, first.content
    assert program.post("/turns", TURN, **AGAIN).json() == first.json()


def test_a_misspelt_field_can_be_put_right_under_the_same_key(program):
    misspelt = {**TURN, "user": "ada"}
    assert program.post("/turns", misspelt, **AGAIN).json()["code"] == "unknown_field"
    assert program.post("/turns", TURN, **AGAIN).status_code == 201


def test_without_it_what_is_said_twice_is_kept_twice(program):
    for _ in range(2):
        program.post("/turns", TURN)
    assert Drawer.objects.count() == 2


def test_one_that_died_files_nothing_twice(program, owner):
    first = program.post("/turns", TURN, **AGAIN)
    # It died after it had filed, and before it had answered.
    IdempotentWrite.objects.update(status=None, claimed_at=timezone.now() - base.GIVEN_UP_AFTER)
    assert program.post("/turns", TURN, **AGAIN).json() == first.json()
    assert Drawer.objects.count() == 1


def test_one_repeated_after_something_else_was_purged_files_nothing_twice(program):
    first = program.post("/turns", TURN, **AGAIN)
    other = {**TURN, "session_id": "other", "messages": [{"role": "user", "content": "I row."}]}
    program.post("/turns", other, HTTP_IDEMPOTENCY_KEY="second")
    assert program.delete("/sessions/other").status_code == 204
    assert list(IdempotentWrite.objects.values_list("body", "fingerprint")) == [(None, "")] * 2
    IdempotentWrite.objects.update(claimed_at=timezone.now() - base.GIVEN_UP_AFTER)
    assert program.post("/turns", TURN, **AGAIN).json() == first.json()
    assert Drawer.objects.count() == 1
    # It means this request from now on.
    other_request = program.post("/turns", {**TURN, "session_id": "two"}, **AGAIN)
    assert other_request.status_code == 422


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/turns", TURN),
        ("/v1/memories/", {"run_id": "one", "messages": "My cello is old."}),
    ],
)
def test_one_repeated_after_its_own_words_were_purged_does_not_bring_them_back(program, path, body):
    first = program.post(path, body, **AGAIN)
    program.delete("/sessions/one")
    IdempotentWrite.objects.update(claimed_at=timezone.now() - base.GIVEN_UP_AFTER)
    assert program.post(path, body, **AGAIN).status_code == first.status_code
    assert not Drawer.objects.exists()
    # Another request with the same words is another matter.
    assert program.post(path, body).status_code == first.status_code
    assert Drawer.objects.count() == 1


AWAY = """
    CREATE FUNCTION goes_away() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN RAISE EXCEPTION 'terminating connection' USING ERRCODE = '57P01'; END $$;
    CREATE TRIGGER away BEFORE INSERT ON palace_passage
    FOR EACH STATEMENT EXECUTE FUNCTION goes_away()
"""


def test_one_that_failed_amid_is_resumed_at_once_and_files_nothing_twice(program):
    with connection.cursor() as cursor:
        cursor.execute(AWAY)
        try:
            assert program.post("/turns", TURN, **AGAIN).status_code == 503
        finally:
            cursor.execute("DROP FUNCTION goes_away CASCADE")
    assert Drawer.objects.count() == 1
    assert program.post("/turns", TURN, **AGAIN).status_code == 201
    assert Drawer.objects.count() == 1


def test_one_under_way_is_not_begun_again(program):
    program.post("/turns", TURN, **AGAIN)
    IdempotentWrite.objects.update(status=None)
    refused = program.post("/turns", TURN, **AGAIN)
    assert refused.status_code == 409
    assert refused.data["code"] == "idempotency_in_progress"
    assert "Retry-After" in refused.headers


def _hold_first_write(owner):
    """A connection of its own that holds the lock of the first write, as another process would."""
    other = connection.copy()
    with other.cursor() as cursor:
        cursor.execute(
            "SELECT pg_advisory_lock(hashtextextended(current_schema() || ' ' || %s, 0))",
            [f"write {owner.pk} first"],
        )
    return other


def test_one_that_is_slow_is_not_begun_again_however_old_its_claim_is(program, owner):
    program.post("/turns", TURN, **AGAIN)
    IdempotentWrite.objects.update(status=None, claimed_at=timezone.now() - base.GIVEN_UP_AFTER)
    slow = _hold_first_write(owner)
    assert program.post("/turns", TURN, **AGAIN).status_code == 409
    slow.close()  # As the kernel does for a process that is killed.
    until(lambda: program.post("/turns", TURN, **AGAIN).status_code == 201)
    assert Drawer.objects.count() == 1


def test_a_lock_that_nobody_works_under_is_not_waited_for_forever(program, owner):
    program.post("/turns", TURN, **AGAIN)
    IdempotentWrite.objects.update(
        status=None, claimed_at=timezone.now() - base.GIVEN_UP_THOUGH_HELD
    )
    left = _hold_first_write(owner)
    assert program.post("/turns", TURN, **AGAIN).status_code == 201
    left.close()


def test_the_lock_is_free_once_it_is_answered(program, owner):
    program.post("/turns", TURN, **AGAIN)
    assert not is_held(f"write {owner.pk} first")


def test_another_request_is_refused(program):
    program.post("/turns", TURN, **AGAIN)
    refused = program.post("/turns", {**TURN, "session_id": "two"}, **AGAIN)
    assert refused.status_code == 422
    assert refused.data["code"] == "idempotency_mismatch"


def test_a_stranger_has_keys_of_their_own(program, strangers_program):
    program.post("/turns", TURN, **AGAIN)
    stored = strangers_program.post("/turns", TURN, **AGAIN)
    assert stored.status_code == 201
    assert "Idempotency-Replayed" not in stored.headers


def test_what_was_refused_is_refused_again(program):
    assert program.post("/turns", {}, **AGAIN).status_code == 400
    again = program.post("/turns", {}, **AGAIN)
    assert again.headers["Idempotency-Replayed"] == "true"
    assert again.headers["Content-Type"] == "application/problem+json"


def test_answers_go_after_a_day_and_with_what_is_purged(program, owner):
    program.post("/turns", TURN, **AGAIN)
    IdempotentWrite.objects.update(claimed_at=timezone.now() - timedelta(hours=25))
    assert program.post("/turns", {**TURN, "messages": OTHER}, **AGAIN).status_code == 201
    assert Drawer.objects.count() == 2
    client_of(owner).delete("/sessions/one")
    assert not IdempotentWrite.objects.exclude(body=None, fingerprint="").exists()


def test_a_key_that_only_writes_does_not_get_a_readers_answer(program, owner):
    program.post("/v1/memories/", {"user_id": "ann", "messages": "I live in Porto."})
    moved = {"user_id": "ann", "messages": "I moved to Lisbon."}
    first = program.post("/v1/memories/", moved, **AGAIN)
    assert "Porto" in first.text
    writer = client_of(owner, scopes=("write",))
    refused = writer.post("/v1/memories/", moved, **AGAIN)
    assert (refused.status_code, refused.data["code"]) == (422, "idempotency_mismatch")
    assert program.post("/v1/memories/", moved, **AGAIN).json() == first.json()
