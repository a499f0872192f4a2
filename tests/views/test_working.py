"""The page of working memory: what is kept, how long, and the ways to delete it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils.html import escape

from palace.views.working_and_episodes import CHARS_SHOWN, CONVERSATIONS_SHOWN, NAMESPACES_SHOWN
from palace.working import get_fields, list_conversations, put_fields
from palace.working.entries import entries_under, set_entry
from palace.working.redis_keys import Namespace

PAGE = "/memory/working/"
SESSION = Namespace.read("session/abc")
PATROL = Namespace.read("patrol/heartbeat")


@pytest.fixture
def filled(palace):
    set_entry(palace, SESSION, "inbox", "3 from <Nora>\r\n", category="email/work", tags=["unread"])
    set_entry(palace, PATROL, "alerts", "An otter escaped", ttl_seconds=90_000)
    put_fields(palace, "42", {"scratchpad": "Rule 37 & more", "open": ["invoice"]})
    return palace


def delete(client, **sent):
    return client.post(reverse("delete_working"), sent, follow=True)


def test_where_nothing_is_kept_it_says_so(alices):
    response = alices.get(PAGE)
    assert response.status_code == 200
    assert "Nothing is kept at the moment." in response.text


def test_it_is_linked_from_the_settings_of_developers(alices):
    assert f'href="{PAGE}"' in alices.get(reverse("api_keys")).text


def test_entries_are_shown_by_namespace_with_all_that_belongs_to_them(alices, filled):
    text = alices.get(PAGE).text
    assert text.index("patrol/heartbeat") < text.index("session/abc")
    for part in ("3 from &lt;Nora&gt;&#13;", "email/work", "unread", "expires in", "4m5", "1d00h"):
        assert part in text


def test_what_is_noted_of_conversations_is_shown(alices, filled):
    text = alices.get(PAGE).text
    for part in ("scratchpad", "Rule 37 &amp; more", "invoice", "% of what a conversation may"):
        assert part in text


def test_to_look_keeps_nothing_longer(alices, filled):
    before = entries_under(filled), list_conversations(filled, limit=3)
    for query in ("", "?under=session/abc/inbox", "?conversation=42", "?q=otter"):
        alices.get(PAGE + query)
    assert (entries_under(filled), list_conversations(filled, limit=3)) == before


def test_words_find_entries(alices, filled):
    text = alices.get(PAGE, {"q": "otters"}).text
    assert "1 entry found" in text
    assert "patrol/heartbeat/alerts" in text
    assert "Nora" not in text
    text = alices.get(PAGE, {"q": "otters", "under": "session"}).text
    assert "Nothing found" in text


def test_it_is_narrowed_to_a_path_or_a_conversation(alices, filled):
    text = alices.get(PAGE, {"under": "session"}).text
    assert "inbox" in text
    assert "alerts" not in text
    assert "scratchpad" not in text
    text = alices.get(PAGE, {"conversation": "42"}).text
    assert "scratchpad" in text
    assert "alerts" not in text
    for nowhere in ({"under": "session/x"}, {"conversation": "43"}):
        assert "There is nothing here any more" in alices.get(PAGE, nowhere).text


def test_a_long_value_is_whole_on_a_page_of_its_own(alices, palace):
    value = "x" * CHARS_SHOWN + " the end"
    set_entry(palace, SESSION, "long", value)
    put_fields(palace, "42", {"long": value})
    text = alices.get(PAGE).text
    assert "the end" not in text
    assert text.count("8 more characters") == 2
    assert "the end" in alices.get(PAGE, {"under": "session/abc/long"}).text
    assert "the end" in alices.get(PAGE, {"conversation": "42"}).text


def test_of_very_many_the_first_are_shown_and_the_others_named(alices, palace):
    for number in range(NAMESPACES_SHOWN + 2):
        set_entry(palace, Namespace("session", f"s{number:02}"), "a", f"value {number:02}")
    for number in range(CONVERSATIONS_SHOWN + 3):
        put_fields(palace, f"talk {number:02}", {"a": 1})
    text = alices.get(PAGE).text
    assert "value 19" in text
    assert "value 20" not in text
    assert "2 more namespaces" in text
    assert "?under=session%2Fs21" in text
    assert "there are 3 more" in text


@pytest.mark.parametrize(
    "asked", [{"under": "room/a"}, {"under": "a//b"}, {"q": "x" * 4001}, {"conversation": "a\0b"}]
)
def test_what_cannot_be_asked_is_said_on_the_page(alices, filled, asked):
    response = alices.get(PAGE, asked)
    assert response.status_code == 400
    assert 'class="error"' in response.text


def test_an_entry_is_deleted_and_one_is_where_one_was(alices, filled):
    response = delete(alices, path="session/abc/inbox", under="session/abc")
    assert response.redirect_chain == [(f"{PAGE}?under=session%2Fabc", 302)]
    assert "session/abc/inbox is deleted." in response.text
    assert [str(entry.path) for entry in entries_under(filled)] == ["patrol/heartbeat/alerts"]
    response = delete(alices, path="session/abc/inbox")
    assert "it has expired, or was deleted already" in response.text


def test_a_field_is_deleted_and_then_all_of_them(alices, filled):
    assert "open of 42 is deleted." in delete(alices, conversation="42", field="open").text
    assert get_fields(filled, "42") == {"scratchpad": "Rule 37 & more"}
    assert "All that was noted of 42 is deleted." in delete(alices, conversation="42").text
    assert get_fields(filled, "42") == {}


@pytest.mark.parametrize(
    "sent",
    [
        *({}, {"path": ""}, {"path": "session/abc"}, {"path": "x"}, {"path": "session/abc/a\0b"}),
        *({"conversation": ""}, {"conversation": "42", "field": ""}),
    ],
)
def test_what_is_no_address_is_not_found(alices, filled, sent):
    assert delete(alices, **sent).status_code == 404


def test_a_stranger_sees_and_deletes_nothing(bobs, filled):
    before = entries_under(filled), list_conversations(filled, limit=3)
    for query in ("", "?under=session/abc/inbox", "?conversation=42", "?q=otter"):
        text = bobs.get(PAGE + query).text
        assert "Nora" not in text
        assert "otter escaped" not in text
        assert "Rule 37" not in text
    for sent in ({"path": "session/abc/inbox"}, {"conversation": "42"}):
        assert "is not there" in delete(bobs, **sent).text
    assert (entries_under(filled), list_conversations(filled, limit=3)) == before


def test_without_sign_in_nothing_is_shown_or_deleted(client, filled):
    assert client.get(PAGE).status_code == 302
    assert client.post(reverse("delete_working"), {"conversation": "42"}).status_code == 302
    assert get_fields(filled, "42")


def test_deleting_is_not_done_by_a_link(alices, filled):
    assert alices.get(reverse("delete_working")).status_code == 405


def test_without_redis_a_sentence_stands_there(alices, filled, settings, tmp_path):
    settings.REDIS_URL = f"unix://{tmp_path}/nobody.sock"
    response = alices.get(PAGE)
    assert response.status_code == 503
    assert "Working memory is unavailable at the moment" in response.text
    response = delete(alices, conversation="42")
    assert response.status_code == 503
    assert "Working memory is unavailable at the moment" in response.text


def test_a_value_is_shown_as_what_it_is_and_not_as_markup(alices, palace):
    sharp = "<script>alert(1)</script>\"'&"
    set_entry(palace, Namespace("session", "<i>"), "<b>", sharp, category="<u>", tags=["<s>"])
    put_fields(palace, "<em>", {"<tt>": {"<a>": sharp}})
    text = alices.get(PAGE).text
    for sign in ("<script>alert", "<i>", "<b>", "<u>", "<s>", "<em>", "<tt>", "<a>"):
        assert sign not in text
    assert escape(sharp) in text


def test_time_left_is_that_of_now(alices, palace):
    entry = set_entry(palace, SESSION, "a", "x", ttl_seconds=7200)
    assert entry.expires_at - entry.stored_at > timedelta(hours=1)
    assert "1h59m" in alices.get(PAGE).text
