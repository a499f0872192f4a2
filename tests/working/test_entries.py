"""Entries: read from anywhere in the palace, written at home, each for its time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from language.errors import BadInput, NamespaceFull, NotItsOwn, TooMuch
from palace.working.entries import delete_entry, entries_under, get_entry, namespaces, set_entry
from palace.working.redis_keys import MOST_VALUE_BYTES, Namespace
from tests.polling import until

PATROL = Namespace.read("patrol/heartbeat")
HELPER = Namespace.read("subagent/t1b2c3")


def keys(palace, prefix=""):
    return [str(entry.path) for entry in entries_under(palace, prefix)]


def expiry_ms(redis_client, palace, own, key):
    return redis_client.zscore(f"{palace.uuid}:expiries:{own}", key)


def age(redis_client, palace, own, key, ms):
    """As if it had been used so much earlier."""
    redis_client.zincrby(f"{palace.uuid}:expiries:{own}", -ms, key)


def test_an_entry_is_kept_to_the_byte_with_what_belongs_to_it(palace, session):
    text = " é\r\n🌍\t\\u0000 "
    made = set_entry(
        palace, session, "emails_inbox", text, category="email/work", tags=["inbox", "unread"]
    )
    assert str(made.path) == "session/abc/emails_inbox"
    assert (made.value, made.category, made.tags) == (text, "email/work", ("inbox", "unread"))
    assert (made.expires_at - made.stored_at).total_seconds() == pytest.approx(300, abs=30)
    found = get_entry(palace, session, "emails_inbox")
    assert (found.value, found.stored_at, found.tags) == (text, made.stored_at, made.tags)
    assert get_entry(palace, session, "another") is None


def test_setting_a_key_again_replaces_all_of_it(palace, session):
    set_entry(palace, session, "a", "old", category="x", tags=["y"], ttl_seconds=1000)
    set_entry(palace, session, "a", "")
    entry = get_entry(palace, session, "a")
    assert (entry.value, entry.category, entry.tags) == ("", "", ())
    assert (entry.expires_at - entry.stored_at).total_seconds() < 400


def test_it_is_read_by_plain_key_at_home_and_by_full_path_from_anywhere(palace, session):
    set_entry(palace, HELPER, "research/results", "Found it")
    full = "subagent/t1b2c3/research/results"
    assert get_entry(palace, HELPER, "research/results").value == "Found it"
    assert get_entry(palace, session, full).value == "Found it"
    assert get_entry(palace, HELPER, full).value == "Found it"
    assert get_entry(palace, session, "research/results") is None


def test_it_is_written_and_deleted_at_home_only(palace, session):
    set_entry(palace, HELPER, "results", "Found it")
    for path in ("subagent/t1b2c3/results", "subagent/t1b2c3/new", "session/abcd/new"):
        with pytest.raises(NotItsOwn, match=f"{path} is not in session/abc"):
            set_entry(palace, session, path, "x")
        with pytest.raises(NotItsOwn):
            delete_entry(palace, session, path)
    assert keys(palace) == ["subagent/t1b2c3/results"]
    set_entry(palace, session, "session/abc/mine", "x")
    assert delete_entry(palace, session, "mine")
    assert not delete_entry(palace, session, "mine")
    assert delete_entry(palace, HELPER, "subagent/t1b2c3/results")
    assert namespaces(palace) == []


def test_with_the_last_entry_nothing_is_left_in_redis(palace, session, redis_client):
    set_entry(palace, session, "a", "x")
    delete_entry(palace, session, "a")
    assert list(redis_client.scan_iter(f"{palace.uuid}:*")) == []


def test_reading_by_key_renews_its_expiry_and_listing_does_not(palace, session, redis_client):
    made = set_entry(palace, session, "a", "x", ttl_seconds=200)
    age(redis_client, palace, session, "a", 150_000)
    [listed] = entries_under(palace)
    assert (made.expires_at - listed.expires_at).total_seconds() == 150
    assert get_entry(palace, session, "a").expires_at >= made.expires_at
    assert entries_under(palace)[0].expires_at >= made.expires_at


def test_what_has_expired_is_not_there(palace, session, redis_client):
    set_entry(palace, session, "short", "x")
    set_entry(palace, session, "long", "y", ttl_seconds=86400)
    age(redis_client, palace, session, "short", 300_001)
    assert get_entry(palace, session, "short") is None
    assert not delete_entry(palace, session, "short")
    assert keys(palace) == ["session/abc/long"]
    assert redis_client.hkeys(f"{palace.uuid}:entries:{session}") == ["long"]


def test_when_all_have_expired_redis_has_let_go_of_them_by_itself(palace, session, redis_client):
    set_entry(palace, session, "a", "x", ttl_seconds=0.05)
    set_entry(palace, PATROL, "b", "x", ttl_seconds=0.05)
    until(lambda: not list(redis_client.scan_iter(f"{palace.uuid}:*")))
    assert keys(palace) == []


def test_the_usual_time_and_how_many_are_settings(palace, session, settings):
    settings.WORKING_ENTRY_TTL_S, settings.WORKING_ENTRIES = 50, 1
    made = set_entry(palace, session, "a", "x")
    assert (made.expires_at - made.stored_at).total_seconds() < 60
    with pytest.raises(NamespaceFull):
        set_entry(palace, session, "b", "x")


def test_one_too_many_is_refused_and_nothing_is_changed(palace, session, redis_client):
    for number in range(50):
        set_entry(palace, session, f"key {number:02}", "x")
    before = entries_under(palace)
    with pytest.raises(NamespaceFull, match="session/abc holds 50 entries"):
        set_entry(palace, session, "one more", "x")
    assert entries_under(palace) == before
    set_entry(palace, session, "key 07", "anew")
    set_entry(palace, Namespace.read("session/def"), "elsewhere", "x")
    age(redis_client, palace, session, "key 03", 300_001)
    set_entry(palace, session, "one more", "x")
    assert len(keys(palace, "session/abc")) == 50
    assert "session/abc/key 03" not in keys(palace)


def test_those_that_write_at_once_do_not_exceed_it_together(palace, session):
    def put(number):
        try:
            set_entry(palace, session, f"key{number}", str(number))
        except NamespaceFull:
            return None
        return f"session/abc/key{number}"

    with ThreadPoolExecutor(8) as threads:
        done = list(filter(None, threads.map(put, range(80))))
    assert len(done) == 50
    assert keys(palace) == sorted(done)


def test_they_are_listed_by_the_beginning_of_the_path_in_whole_parts(palace, session):
    set_entry(palace, session, "mail/inbox", "x")
    set_entry(palace, session, "mailbox", "x")
    set_entry(palace, Namespace.read("session/abcd"), "draft", "x")
    set_entry(palace, PATROL, "alerts", "x")
    assert keys(palace) == [
        "patrol/heartbeat/alerts",
        "session/abc/mail/inbox",
        "session/abc/mailbox",
        "session/abcd/draft",
    ]
    assert keys(palace, "session/abc") == ["session/abc/mail/inbox", "session/abc/mailbox"]
    assert keys(palace, "session/abc/") == keys(palace, "session/abc")
    assert keys(palace, "session/abc/mail") == ["session/abc/mail/inbox"]
    assert keys(palace, "session/abc/mailbox") == ["session/abc/mailbox"]
    assert keys(palace, "patrol") == ["patrol/heartbeat/alerts"]
    assert keys(palace, "subagent") == []
    assert [str(space) for space in namespaces(palace)] == [
        *("patrol/heartbeat", "session/abc", "session/abcd")
    ]


@pytest.mark.parametrize(
    "name",
    [
        *("", "session", "session/", "session//", "session/a/b", "room/a", "session/..", "a/b"),
        *(" session/a", "session/a\0", "session/\ud800", "session/a\nb", "session/ a", None),
        f"session/{'x' * 200}",
    ],
)
def test_what_is_no_namespace_is_said_to_be_none(name):
    with pytest.raises(BadInput, match="A namespace"):
        Namespace.read(name)


@pytest.mark.parametrize(
    "key",
    [
        *("", "/a", "a/", "a//b", ".", "a/../b", " a", "a\nb", "a\0", "\ud800", "x" * 201, None, 3),
        *("session/abc", "patrol/x", "session/abc/", "session//a"),
    ],
)
def test_what_is_no_key_is_refused_and_nothing_is_stored(palace, session, key):
    for act in (set_entry, get_entry, delete_entry):
        with pytest.raises(BadInput):
            act(palace, session, key, *(["x"] if act is set_entry else []))
    assert keys(palace) == []


def test_a_kind_alone_is_a_plain_key(palace, session):
    assert str(set_entry(palace, session, "session", "x").path) == "session/abc/session"


@pytest.mark.parametrize(
    "bad",
    [
        {"value": "a\0b"},
        {"value": "\ud800"},
        {"value": None},
        {"value": b"bytes"},
        {"category": "a//b"},
        {"category": "a\nb"},
        {"tags": "text"},
        {"tags": ["a\nb"]},
        {"tags": [""]},
        {"tags": [f"tag {n}" for n in range(21)]},
        {"tags": 3},
        {"ttl_seconds": 0},
        {"ttl_seconds": 31 * 86400},
    ],
)
def test_what_cannot_be_kept_is_refused_and_what_was_there_stays(palace, session, bad):
    set_entry(palace, session, "a", "there")
    with pytest.raises(BadInput):
        set_entry(palace, session, "a", **{"value": "x", **bad})
    assert get_entry(palace, session, "a").value == "there"


def test_a_value_is_large_and_no_larger(palace, session):
    text = "é" * (MOST_VALUE_BYTES // 2)
    set_entry(palace, session, "a", text)
    assert get_entry(palace, session, "a").value == text
    with pytest.raises(TooMuch, match="has up to 256 KB, this one has 257"):
        set_entry(palace, session, "a", text + "x")
    assert get_entry(palace, session, "a").value == text


@pytest.mark.parametrize("prefix", ["room", "a/b", "/", "session//a", "sess", None])
def test_what_no_path_begins_with_is_refused(palace, prefix):
    with pytest.raises(BadInput):
        entries_under(palace, prefix)


def test_another_palace_has_its_own(palace, other, session):
    set_entry(palace, session, "a", "Alice's")
    assert get_entry(other, session, "a") is None
    assert get_entry(other, PATROL, "session/abc/a") is None
    assert not delete_entry(other, session, "a")
    assert keys(other) == []
    assert namespaces(other) == []
    set_entry(other, session, "a", "Bob's")
    assert get_entry(palace, session, "a").value == "Alice's"
