"""Gemini's activity: prompts and answers of a day, oldest first."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from language.errors import BadImport
from palace.transfer.importers import GEMINI, detect, read
from palace.transfer.importers.chat_sites import NO_PROMPT, OTHER_PRODUCT
from palace.transfer.importers.message_forms import text_of
from tests.transfer.importers.exports import gemini, write_json, write_zip

PLACE = "Takeout/My Activity/Gemini Apps/MyActivity.json"


def read_all(path):
    assert detect(path) is GEMINI
    return list(read(path, GEMINI))


def test_the_prompts_of_a_day_are_a_conversation_oldest_first(tmp_path):
    items = [
        gemini("Prompted Thanks", "<p>Any time.</p>", at="2024-06-02T08:00:00Z"),
        gemini("Prompted And now?", "<p>Wait.</p>", at="2024-06-01T10:05:00.5Z"),
        gemini("Prompted  Which tea? ", "<p>Oolong &amp; <b>green</b>.</p>"),
    ]
    later, first = read_all(write_zip(tmp_path / "takeout.zip", {PLACE: items}))
    assert (first.transcript.external_id, later.transcript.external_id) == (
        "2024-06-01",
        "2024-06-02",
    )
    assert [(turn.role, turn.text) for turn in first.turns] == [
        ("user", " Which tea? "),
        ("assistant", "Oolong & green."),
        ("user", "And now?"),
        ("assistant", "Wait."),
    ]
    assert first.turns[0].said_at == datetime(2024, 6, 1, 10, 0, 0, 123_000, tzinfo=UTC)
    assert first.turns[1].metadata == {"html": "<p>Oolong &amp; <b>green</b>.</p>"}


def test_what_is_no_prompt_is_counted_and_answers_asked_for_again_are_kept(tmp_path):
    items = [
        gemini("Gave feedback: Good response"),
        gemini("Watched a film", header="YouTube", products=["YouTube"]),
        gemini("Prompted Look", "<p>A cat.</p>", "<p>A dog.</p>", imageFile="cat.png"),
        gemini("Frage auf Deutsch", "<p>Ja.</p>", at="2024-06-01T09:00:00Z"),
    ]
    (day,) = read_all(write_json(tmp_path / "My Activity.json", items))
    assert [turn.text for turn in day.turns] == [
        "Frage auf Deutsch",
        "Ja.",
        "Look",
        "A cat.",
        "A dog.",
    ]
    assert dict(day.skipped) == {NO_PROMPT: 1, OTHER_PRODUCT: 1}
    assert dict(day.left_out) == {"file": 1}


def test_of_a_whole_takeout_only_gemini_is_read(tmp_path):
    members = {
        "Takeout/My Activity/Search/MyActivity.json": [{"header": "Search", "title": "x"}],
        PLACE: [gemini("Prompted Q", "<p>A</p>")],
    }
    (day,) = read_all(write_zip(tmp_path / "a.zip", members))
    assert len(day.turns) == 2


def test_a_web_page_is_asked_for_as_json(tmp_path):
    members = {PLACE.replace("json", "html"): "<html></html>"}
    with pytest.raises(BadImport, match="choose JSON for My Activity"):
        detect(write_zip(tmp_path / "a.zip", members))


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<p>One</p><p>Two<br>lines</p>", "One\n\nTwo\nlines"),
        ("<ul><li><p>a</p></li><li>b</li></ul><p>c</p>", "- a\n\n- b\n\nc"),
        ("<pre><code>if x:\n    y()</code></pre>", "if x:\n    y()"),
        ("<table><tr><td>1</td><td>2</td></tr><tr><td>3</td></tr></table>", "1 | 2\n3"),
        ("a<script>alert(1)</script> &lt;b&gt;", "a <b>"),
        ("<a title='1 > 0' href=\"/x\">one</a> and <b", "one and <b"),
        ("a <!-- b --> c <!-- d", "a c <!-- d"),
        (f"&#{'0' * 5000}65;&#{'9' * 5000};&#x1F600;", "A\N{REPLACEMENT CHARACTER}\U0001f600"),
    ],
)
def test_a_page_becomes_lines_and_paragraphs(page, text):
    assert text_of(page) == text
