"""A conversation's fields: merged, limited as a whole, and gone together in time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from language.errors import BadInput, TooMuch
from palace.models import Palace
from palace.working import (
    MOST_FIELDS_BYTES,
    delete_fields,
    get_field,
    get_fields,
    list_conversations,
    put_fields,
)
from tests.polling import until
from tests.working.conftest import DAY_MS

TALK = "conversation-7"


def held(palace, limit=10):
    return list_conversations(palace, limit=limit)[0]


def test_what_is_put_is_merged(palace):
    put_fields(palace, TALK, {"well": "42-123", "open": [1, 2.5, None, True]})
    put_fields(palace, TALK, {"open": {"a": "é\n🌍"}, "note": ""})
    assert get_fields(palace, TALK) == {"well": "42-123", "open": {"a": "é\n🌍"}, "note": ""}
    assert get_fields(palace, "another") == {}
    assert get_field(palace, TALK, "well") == "42-123"
    assert get_field(palace, TALK, "never put", "default") == "default"
    with pytest.raises(BadInput, match="A field has a name"):
        get_field(palace, TALK, "")


def test_fields_are_deleted_one_by_one_or_all_at_once(palace):
    put_fields(palace, TALK, {"a": 1, "b": 2, "c": 3})
    assert delete_fields(palace, TALK, ["a", "never there"]) == 1
    assert get_fields(palace, TALK) == {"b": 2, "c": 3}
    assert delete_fields(palace, TALK, []) == 0
    assert delete_fields(palace, TALK) == 2
    assert get_fields(palace, TALK) == {}
    assert delete_fields(palace, TALK) == 0
    assert held(palace) == []


def test_with_its_last_field_a_conversation_goes_and_so_does_its_time(palace, redis_client):
    put_fields(palace, TALK, {"a": 1}, ttl_seconds=5000)
    assert delete_fields(palace, TALK, ["a"]) == 1
    assert list(redis_client.scan_iter(f"{palace.uuid}:*")) == []


def test_a_scratchpad_is_text_and_entities_are_a_list(palace):
    fields = {"scratchpad": "Rule 37", "entities": [{"type": "Well", "id": "42-123"}]}
    put_fields(palace, TALK, fields)
    for bad in ({"scratchpad": None}, {"scratchpad": ["a"]}, {"entities": "a"}, {"entities": {}}):
        with pytest.raises(BadInput, match="holds text"):
            put_fields(palace, TALK, bad)
    assert get_fields(palace, TALK) == fields


def test_each_use_renews_their_expiry(palace, redis_client):
    put_fields(palace, TALK, {"a": 1})
    name = f"{palace.uuid}:conversation:{TALK}"
    for use in (lambda: get_fields(palace, TALK), lambda: put_fields(palace, TALK, {"b": 2})):
        redis_client.expire(name, 100)
        use()
        assert DAY_MS - 60_000 < redis_client.pttl(name) <= DAY_MS


def test_to_look_at_all_of_them_is_no_use(palace, redis_client):
    put_fields(palace, TALK, {"a": 1})
    redis_client.expire(f"{palace.uuid}:conversation:{TALK}", 100)
    assert [one.conversation for one in held(palace)] == [TALK]
    assert redis_client.ttl(f"{palace.uuid}:conversation:{TALK}") <= 100


def test_another_time_stays_with_the_conversation(palace, redis_client):
    name = f"{palace.uuid}:conversation:{TALK}"
    put_fields(palace, TALK, {"a": 1}, ttl_seconds=7 * 86400)
    get_fields(palace, TALK)
    put_fields(palace, TALK, {"b": 1})
    assert redis_client.pttl(name) > 6 * DAY_MS
    put_fields(palace, TALK, {}, ttl_seconds=50)
    assert redis_client.pttl(name) <= 50_000
    assert get_fields(palace, TALK) == {"a": 1, "b": 1}


def test_the_usual_time_is_a_setting(palace, redis_client, settings):
    settings.WORKING_MEMORY_TTL_S = 77
    put_fields(palace, TALK, {"a": 1})
    assert 0 < redis_client.pttl(f"{palace.uuid}:conversation:{TALK}") <= 77_000


def test_a_time_for_nothing_makes_nothing(palace, redis_client):
    put_fields(palace, TALK, {}, ttl_seconds=50)
    assert list(redis_client.scan_iter(f"{palace.uuid}:*")) == []


def test_when_their_time_is_over_they_are_gone(palace, redis_client):
    put_fields(palace, TALK, {"a": 1}, ttl_seconds=0.05)
    put_fields(palace, "stays", {"a": 1})
    until(lambda: not redis_client.exists(f"{palace.uuid}:conversation:{TALK}"))
    assert [one.conversation for one in held(palace)] == ["stays"]
    assert get_fields(palace, TALK) == {}
    put_fields(palace, TALK, {"b": 1})
    assert redis_client.ttl(f"{palace.uuid}:conversation:{TALK}") > 1000


def test_up_to_the_limit_it_fits_and_one_byte_more_changes_nothing(palace):
    put_fields(palace, TALK, {"small": 1, "big": "x"}, ttl_seconds=100)
    room = MOST_FIELDS_BYTES - len('small1big""')
    put_fields(palace, TALK, {"big": "y" * room})
    assert held(palace)[0].size == MOST_FIELDS_BYTES
    before = get_fields(palace, TALK)
    for more in ({"z": 1}, {"small": 11}, {"big": "é" * (room // 2 + 1)}):
        with pytest.raises(TooMuch, match=r"64 KB.*Nothing was put"):
            put_fields(palace, TALK, more, ttl_seconds=5)
    assert get_fields(palace, TALK) == before
    put_fields(palace, TALK, {"big": "small again", "z": 1})
    with pytest.raises(TooMuch):
        put_fields(palace, TALK, {"z": "x" * MOST_FIELDS_BYTES})


def test_two_that_put_at_once_do_not_exceed_it_together(palace):
    def put(number):
        try:
            put_fields(palace, TALK, {f"field{number}": "x" * 10_000})
        except TooMuch:
            return False
        return True

    with ThreadPoolExecutor(8) as threads:
        done = list(threads.map(put, range(24)))
    assert sum(done) == 6
    [one] = held(palace)
    assert one.size <= MOST_FIELDS_BYTES
    assert set(one.fields) == {f"field{number}" for number, was_put in enumerate(done) if was_put}


def test_many_small_fields_are_put_at_once(palace):
    fields = {f"f{number}": number for number in range(6000)}
    put_fields(palace, TALK, fields)
    assert get_fields(palace, TALK) == fields


@pytest.mark.parametrize("talk", ["", " a", "a\0b", "\ud800", "a\nb", "x" * 201, None, 7])
def test_what_is_no_conversation_is_said_to_be_none(palace, talk):
    for act in (get_fields, delete_fields, lambda p, t: put_fields(p, t, {"a": 1})):
        with pytest.raises(BadInput, match="A conversation has a name"):
            act(palace, talk)


@pytest.mark.parametrize(
    "fields",
    [
        {"": 1},
        {"a\0": 1},
        {3: 1},
        {(): 1},
        {"a": "\0"},
        {"a": "\ud800"},
        {"a": [{"b": "\0"}]},
        {"a": {"\udfff": 1}},
        {"a": {1: 1}},
        {"a": float("nan")},
        {"a": b"bytes"},
        {"a": {1, 2}},
        "text",
        None,
        ["a"],
    ],
)
def test_what_cannot_be_kept_is_refused_and_nothing_is_put(palace, fields):
    put_fields(palace, TALK, {"there": 1})
    with pytest.raises(BadInput):
        put_fields(palace, TALK, fields)
    assert get_fields(palace, TALK) == {"there": 1}


def test_what_goes_round_in_itself_is_refused(palace):
    loop = []
    loop.append(loop)
    deep = []
    for _ in range(100_000):
        deep = [deep]
    for value in (loop, deep):
        with pytest.raises(BadInput, match="cannot be written as JSON"):
            put_fields(palace, TALK, {"a": value})


@pytest.mark.parametrize("ttl", [0, -1, float("nan"), float("inf"), "60", True, 31 * 86400])
def test_what_is_no_time_is_refused(palace, ttl):
    with pytest.raises(BadInput, match="ttl_seconds"):
        put_fields(palace, TALK, {"a": 1}, ttl_seconds=ttl)
    assert get_fields(palace, TALK) == {}


def test_a_text_that_only_looks_like_nul_is_kept(palace):
    put_fields(palace, TALK, {"a": "\\u0000"})
    assert get_fields(palace, TALK) == {"a": "\\u0000"}


def test_another_palace_has_its_own(palace, bob):
    other = Palace.objects.own(bob)
    put_fields(palace, TALK, {"a": 1})
    assert get_fields(other, TALK) == {}
    assert delete_fields(other, TALK) == 0
    assert held(other) == []
    put_fields(other, TALK, {"a": 2})
    assert get_fields(palace, TALK) == {"a": 1}


def test_a_list_says_how_many_there_are(palace):
    for number in range(5):
        put_fields(palace, f"talk {number}", {"a": number}, ttl_seconds=1000 + number)
    shown, total = list_conversations(palace, limit=2)
    assert ([one.conversation for one in shown], total) == (["talk 4", "talk 3"], 5)
