"""Entries found by words, by category and by tags; and what a model sees of them."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import pytest

from language.errors import BadInput
from palace.working.entries import bm25, inventory, search_entries, set_entry, time_left
from palace.working.redis_keys import Namespace

PATROL = Namespace.read("patrol/heartbeat")
HELPER = Namespace.read("subagent/t1b2c3")


@pytest.fixture
def filled(palace, session):
    set_entry(palace, session, "emails_inbox", "Nora asks about the otters", category="email")
    set_entry(palace, session, "draft", "Dear Nora", category="email/work", tags=["reply", "Nora"])
    set_entry(palace, session, "page_1", "Wells in Rule 37 areas", tags=["web"])
    set_entry(palace, PATROL, "alerts", "An otter alert: one otter escaped", tags=["urgent", "web"])
    return palace


def found(palace, **asked):
    return [str(one.entry.path) for one in search_entries(palace, **asked)]


def test_words_are_found_in_other_forms_best_first(filled):
    assert found(filled, query="otters escaping") == [
        "patrol/heartbeat/alerts",
        "session/abc/emails_inbox",
    ]
    assert found(filled, query="otters", prefix="session/abc") == ["session/abc/emails_inbox"]
    assert found(filled, query="zebra") == []
    assert found(filled, query="the of") == []


def test_tags_category_and_key_are_words_too(filled):
    assert found(filled, query="urgent") == ["patrol/heartbeat/alerts"]
    assert set(found(filled, query="email")) == {"session/abc/emails_inbox", "session/abc/draft"}
    assert found(filled, query="inbox") == ["session/abc/emails_inbox"]


def test_a_category_has_those_below_it_and_all_tags_are_had(filled):
    assert set(found(filled, category="email")) == {
        "session/abc/emails_inbox",
        "session/abc/draft",
    }
    assert found(filled, category="email/work") == ["session/abc/draft"]
    assert found(filled, category="em") == []
    assert set(found(filled, tags=["web"])) == {"session/abc/page_1", "patrol/heartbeat/alerts"}
    assert found(filled, tags=["web", "urgent"]) == ["patrol/heartbeat/alerts"]
    assert found(filled, query="Nora", category="email", tags=["reply"]) == ["session/abc/draft"]


def test_without_words_the_newest_come_first(filled):
    assert found(filled, query="  ", limit=3) == [
        "patrol/heartbeat/alerts",
        "session/abc/page_1",
        "session/abc/draft",
    ]


def test_another_palace_is_not_searched(filled, other):
    assert found(other, query="otters") == []
    assert found(other) == []


@pytest.mark.parametrize(
    "bad", [{"query": None}, {"query": "x" * 4001}, {"query": "a\0"}, {"prefix": "room"}]
)
def test_what_cannot_be_asked_is_refused(palace, bad):
    with pytest.raises(BadInput):
        search_entries(palace, **bad)


def test_bm25_is_what_the_formula_says():
    texts = [Counter("ab"), Counter("aab"), Counter("c")]
    # ln(1 + 1.5 / 2.5) times 2 * 2.2 / (2 + 1.2 * (0.25 + 0.75 * 3 / 2))
    assert bm25(["a"], texts)[1] == pytest.approx(0.470004 * 4.4 / 3.65, abs=1e-4)
    assert bm25(["z"], texts) == [0, 0, 0]
    assert bm25(["a"], []) == []
    assert bm25(["a"], [Counter()]) == [0]


def test_a_session_gets_its_own_entries_and_patrols_and_outlines(palace, session):
    set_entry(palace, session, "emails_inbox", "…", category="email", tags=["inbox", "unread"])
    set_entry(palace, session, "draft_reply", "…", ttl_seconds=20_000)
    set_entry(palace, Namespace.read("session/def"), "another's", "…")
    set_entry(palace, PATROL, "alerts", "secret words", tags=["urgent"], ttl_seconds=90_000)
    set_entry(palace, HELPER, "research-index", "…")
    set_entry(palace, HELPER, "research-1", "…")
    own, patrols, outlines = inventory(palace, session).split("\n\n")
    assert own.splitlines()[0].startswith("Working memory (scratch space — use")
    assert own.splitlines()[1].startswith("- session/abc/draft_reply: expires in 5h3")
    assert own.splitlines()[2].startswith("- session/abc/emails_inbox: expires in ")
    assert own.endswith(", category: email, tags: inbox, unread")
    assert patrols.splitlines()[1:] == ["- patrol/heartbeat/alerts: expires in 1d00h, tags: urgent"]
    assert [line.split(":")[0] for line in outlines.splitlines()[1:]] == [
        "- subagent/t1b2c3/research-index"
    ]
    assert "secret words" not in patrols
    assert inventory(palace, PATROL).count("\n- ") == 1
    assert inventory(palace, HELPER).count("\n- ") == 2


def test_where_there_is_nothing_a_model_gets_nothing(palace, session):
    assert inventory(palace, session) == ""


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-5, "0s"),
        (9.9, "9s"),
        (60, "1m00s"),
        (272, "4m32s"),
        (3600, "1h00m"),
        (15_120, "4h12m"),
        (277_200, "3d05h"),
    ],
)
def test_time_left_is_in_its_two_largest_units(seconds, words):
    assert time_left(timedelta(seconds=seconds)) == words
