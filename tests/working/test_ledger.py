"""The ledger: what was put before a conversation's model, turn by turn, and what late comers do."""

from __future__ import annotations

import threading

import pytest
import redis
from hypothesis import given
from hypothesis import strategies as st

from language.errors import BadInput, WorkingMemoryAway
from palace.models import Palace
from palace.working.ledger import INJECTED, Ledger, LedgerEntry, within

TURNS = st.integers(0, 60)


@pytest.fixture
def ledger(palace):
    return Ledger(palace, "talk")


def drawer(name="drawer:1", turn=0, **values):
    return LedgerEntry(name, turn=turn, **values)


def test_what_was_marked_is_there_until_it_is_evicted(ledger):
    entry = drawer(digest="d" * 64, version="2", turn=4, span=(3, 9), told="until May")
    assert ledger.check("drawer:1") is None
    ledger.mark(entry)
    ledger.mark(entry)
    assert ledger.check("drawer:1") == entry
    assert ledger.get() == {"drawer:1": entry}
    assert ledger.evict(["drawer:1", "drawer:2"]) == 1
    assert ledger.get() == {}
    assert ledger.evict([]) == 0


def test_any_name_may_be_marked(ledger):
    ledger.mark(LedgerEntry("skill:rule-37"), LedgerEntry("other", value="1"))
    assert ledger.check("skill:rule-37").value == INJECTED
    assert ledger.get()["other"].value == "1"
    ledger.clear()
    assert ledger.get() == {}


@pytest.mark.parametrize("name", ["", "  ", "x" * 201, "a\0b", "\ud800"])
def test_what_is_no_name_is_refused(palace, ledger, name):
    with pytest.raises(BadInput):
        Ledger(palace, name)
    with pytest.raises(BadInput):
        ledger.mark(LedgerEntry("fine"), LedgerEntry(name))
    with pytest.raises(BadInput):
        ledger.mark(LedgerEntry("fine"), LedgerEntry("item", value=name))
    assert ledger.get() == {}


def test_conversations_and_palaces_are_apart(palace, ledger, bob):
    ledger.mark(drawer())
    assert Ledger(palace, "other").get() == {}
    assert Ledger(Palace.objects.own(bob), "talk").get() == {}


def test_it_goes_by_itself_and_is_kept_on_by_use(ledger, settings):
    client = redis.Redis.from_url(settings.REDIS_URL, decode_responses=True)
    settings.WORKING_MEMORY_TTL_S = 100
    ledger.mark(drawer())
    assert 0 < client.ttl(ledger._key) <= 100
    settings.WORKING_MEMORY_TTL_S = 5000
    ledger.get()
    assert 100 < client.ttl(ledger._key) <= 5000
    client.close()


def test_other_words_and_other_versions_are_not_the_same():
    entry = drawer(digest="a", version="1")
    assert entry.is_same(drawer(digest="a", version="1", turn=7))
    assert not entry.is_same(drawer(digest="b", version="1"))
    assert not entry.is_same(drawer(digest="a", version="2"))


def test_who_comes_late_changes_nothing_of_what_came_after(ledger):
    early, late = drawer(turn=2), drawer(turn=8)
    ledger.mark(late)
    ledger.mark(early)
    assert ledger.check("drawer:1") == late
    ledger.change(gone=[early])
    assert ledger.check("drawer:1") == late
    ledger.change(gone=[late])
    assert ledger.check("drawer:1") is None


def test_marked_and_gone_are_one_change(ledger):
    old, new = drawer("drawer:1"), drawer("drawer:2", turn=2)
    ledger.mark(old)
    ledger.change(marked=[new], gone=[old])
    assert ledger.get() == {"drawer:2": new}


def test_many_at_once_keep_the_latest_turn_of_each(palace):
    def mark(turn):
        Ledger(palace, "talk").mark(*(drawer(f"drawer:{n}", turn) for n in range(5)))

    threads = [threading.Thread(target=mark, args=[turn]) for turn in (3, 9, 1, 7, 5, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {entry.turn for entry in Ledger(palace, "talk").get().values()} == {9}


def test_without_redis_it_says_so(palace, settings, tmp_path):
    settings.REDIS_URL = f"unix://{tmp_path}/none.sock"
    ledger = Ledger(palace, "talk")
    for asked in (ledger.get, lambda: ledger.mark(drawer()), lambda: ledger.evict(["a"])):
        with pytest.raises(WorkingMemoryAway):
            asked()


@given(st.dictionaries(st.text(max_size=3), st.none() | TURNS), TURNS, TURNS)
def test_what_is_within_the_window_was_put_there_before_and_is_still_read(turns, since, turn):
    entries = {name: LedgerEntry(name, turn=at) for name, at in turns.items()}
    held = within(entries, since, turn)
    for name, at in turns.items():
        assert (name in held) == (at is None or since <= at < turn)
    # What leaves as the conversation goes on does not come back by itself.
    later = within(entries, since + 1, turn)
    assert later.keys() <= held.keys()


@given(st.lists(st.tuples(st.sampled_from("abc"), TURNS), max_size=12), st.integers(1, 20))
def test_put_in_when_it_is_not_there_nothing_is_there_twice(asked, window):
    """The arithmetic of a whole talk: an item comes again when, and only when, it has left."""
    entries, shown = {}, []
    for turn, (name, _) in enumerate(sorted(asked, key=lambda each: each[1])):
        held = within(entries, max(0, turn - window + 1), turn)
        if name not in held:
            entries[name] = LedgerEntry(name, turn=turn)
            shown.append((name, turn))
    for name, turn in shown:
        again = [other for which, other in shown if which == name and other > turn]
        assert all(other - turn >= window for other in again)
