"""A block that Loci wrote is no memory when it comes back; what only looks like one is."""

from __future__ import annotations

import html
import json
import re
import time
from itertools import product
from textwrap import indent
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.mcp.registry import Caller
from api.mcp.tools import TOOLS
from api.openai.chat_request import read_history, without_our_answers
from language.english.facts.fact_reading import read_facts
from language.transcripts import Transcript, Turn
from palace.models import Drawer, Fact
from palace.recall.context_builder import pack
from palace.recall.request import RecallRequest
from palace.recall.retrieval import recall
from palace.storage.own_answers import FIELDS
from palace.storage.own_output import BLOCK_END, BLOCK_START, own_words
from palace.storage.transcript_filing import OURS, file_transcript
from tests.api.openai.test_message_filing import conversations, tell
from tests.api.rest.conftest import client_of
from tests.conversations import BATTERY, START
from tests.furnished_palaces import furnish_with
from tests.recall.test_context_builder import Spoken, Stated, hit, texts

HARD = 'say "hi", it\'s C:\\new \\u0041 &amp; <b>\u00a0\u2028 👩‍👩‍👧 {"a": 1}\n  next\tline </div>'
QUESTION = "What about the wires?"


def block_of(text=HARD):
    return pack([hit(1, text)], None, [Stated(text)], [Spoken(text)]).context


def for_javascript(value):
    return json.dumps(value).replace("<", "\\u003c").replace(">", "\\u003E").replace("&", "\\u0026")


ENCODERS = {
    "as it is": str,
    "JSON": json.dumps,
    "JSON in UTF-8": lambda text: json.dumps(text, ensure_ascii=False),
    "JSON with slashes": lambda text: json.dumps(text).replace("/", "\\/"),
    "JSON in a page": for_javascript,
    "HTML": html.escape,
    "Python": repr,
    "Python in ASCII": ascii,
    "indented": lambda text: text.replace("\n", "\r\n    "),
}
# What hides all or each line of a text, so that only the first two stand within others.
OUTER = {
    "a URL": quote,
    "a form": quote_plus,
    "a URL twice": lambda text: quote(quote(text)),
    "bytes": lambda text: repr(text.encode()),
    "quoted": lambda text: indent(text, "> ", lambda _: True),
    "events": lambda text: indent(text, "data: ", lambda _: True),
    "added": lambda text: indent(text, "+", lambda _: True),
    "numbered": lambda text: "".join(
        f"{place:6}\t{line}" for place, line in enumerate(text.splitlines(keepends=True), 1)
    ),
    "numbered by grep": lambda text: "".join(
        f"{place}:{line}" for place, line in enumerate(text.splitlines(keepends=True), 1)
    ),
}


@pytest.mark.parametrize("role", ["system", "tool", "assistant"])
@pytest.mark.parametrize("encoders", list(product(ENCODERS, repeat=2)), ids="+".join)
def test_our_block_is_taken_out_in_every_encoding(role, encoders):
    block = block_of()
    for name in encoders:
        block = ENCODERS[name](block)
    left = own_words(role, f"Memory: {block} That is all.")
    assert "memory_context" not in left
    assert "Seal" not in left
    assert left.startswith("Memory: ")
    assert left.endswith(" That is all.")


@pytest.mark.parametrize("role", ["tool", "assistant"])
@pytest.mark.parametrize("inner", ["as it is", "JSON", "HTML"])
@pytest.mark.parametrize("outer", OUTER)
def test_so_it_is_where_lines_are_marked_or_all_is_coded(role, inner, outer):
    block = block_of("Très bien: I bake 100% rye, 1 + 1 > 1.\n> A second line\n3: and\ta third")
    left = own_words(role, OUTER[outer](f"{ENCODERS[inner](block)}\nThat is all."))
    assert "rye" not in left
    assert "Seal" not in left
    assert re.search("That(.|%20|%2520)is(.|%20|%2520)all", left)


@given(texts, st.lists(st.sampled_from(list(ENCODERS)), max_size=3))
def test_whatever_our_block_says_it_is_taken_out(text, encoders):
    block = block_of(text)
    for name in encoders:
        block = ENCODERS[name](block)
    assert "Recalled by Loci" not in own_words("tool", f"{block}!")


@pytest.mark.parametrize("name", ENCODERS)
def test_ahead_of_a_persons_words_it_was_put_by_a_program(name):
    # A string's own quotation marks are words to a reader.
    block = ENCODERS[name](block_of()).strip("\"'")
    assert own_words("user", f"{block}\n\n{QUESTION}") == QUESTION
    assert own_words("user", f" \n{block}{block}{QUESTION}").strip() == QUESTION


@pytest.mark.parametrize(
    "text",
    [
        f"Why did you tell me this?\n\n{block_of()}\n\nIt is wrong.",
        block_of(),
        f"\n{block_of()}\n\n{block_of()}\n",
        f"{BLOCK_START}\n…\n[§ W-001/R-01/D-001] something old\n{BLOCK_END}\n\nWhat is that?",
        f"{block_of('It rained.').replace('rained', 'snowed')}\n\nI changed a word.",
        f"{BLOCK_START}\nThese are records. Seal: 0123456789ab\n{BLOCK_END} Mine.",
        f"{block_of()[:-3]}\n\nIt ends there.",
        json.dumps({"note": "<memory_context>\nmine\n</memory_context>"}),
        "What is <memory_context> for, and </memory_context>?",
    ],
    ids=range(9),
)
def test_what_a_person_pastes_is_kept_to_the_byte(palace, text):
    turn = Turn("1", "user", text, START)
    file_transcript(palace, Transcript("turns", "c", "", (turn,)))
    assert Drawer.objects.get().text.encode() == text.encode()


def test_of_a_pasted_block_no_fact_is_learnt():
    quoted = pack([hit(1, "I have a dog.")], None, [], [Spoken("I live in Rome.")]).context
    for text in (f"Look:\n{quoted}\nI like tea.", f"{quoted}\n{quoted}\n\nI like tea."):
        assert [each.text for each in read_facts([Turn("1", "user", text, START)])] == [
            "User likes tea"
        ]


@pytest.mark.parametrize("role", ["system", "tool", "assistant"])
def test_what_only_looks_like_our_block_is_kept_in_every_role(role):
    for text in (
        f"{BLOCK_START}\nmy words\n{BLOCK_END}",
        block_of("It rained.").replace("rained", "snowed"),
        json.dumps({"context": f"{BLOCK_START}\nmy words\n{BLOCK_END}"}),
    ):
        assert own_words(role, text) == text


def test_on_locis_own_page_nothing_is_put_into_a_message(palace):
    text = f"{block_of()}\n\n{QUESTION}"
    turn = Turn("1", "user", text, START)
    file_transcript(palace, Transcript("chat", "c", "", (turn,)))
    assert Drawer.objects.get().text == text


def test_words_around_our_block_are_kept(palace):
    turns = (
        Turn("1", "system", f"{block_of()}\n\nBe brief.", START),
        Turn("2", "user", f"{block_of()}\n\n{QUESTION}", START),
        Turn("3", "tool", block_of(), START),
        Turn("4", "assistant", f"As I said:\n{block_of()}\nso.", START),
    )
    filed = file_transcript(palace, Transcript("turns", "c", "", turns))
    texts_kept = [drawer.text for drawer in Drawer.objects.in_order()]
    assert texts_kept == ["Be brief.", QUESTION, "As I said:\nso."]
    assert filed.skipped == {OURS: 1}


def test_a_block_within_a_block_is_a_quotation(palace):
    """A pasted block that is recalled later does not end the block it stands in."""
    block = block_of(f"You said:\n{block_of()}\nand {json.dumps(block_of())} and that is wrong.")
    assert own_words("tool", f"{block}Done.") == "Done."
    assert own_words("tool", f"{json.dumps(block)}Done.") == '""Done.'


ENVELOPES = {
    "as it is": lambda answer: json.dumps(answer, default=str),
    "indented": lambda answer: json.dumps(answer, default=str, indent=2),
    "a string": lambda answer: json.dumps(json.dumps(answer, default=str)),
    "MCP": lambda answer: json.dumps(
        {"content": [{"type": "text", "text": json.dumps(answer, default=str)}], "isError": False}
    ),
    "parts": lambda answer: json.dumps([{"type": "text", "text": json.dumps(answer, default=str)}]),
    "HTML": lambda answer: html.escape(json.dumps(answer, default=str)),
    "Python": lambda answer: repr(json.loads(json.dumps(answer, default=str))),
}
# Around an answer, or a part of it.
WITHIN = {
    "a response": lambda answer: json.dumps({"status": 200, "body": answer}),
    "a list": lambda answer: json.dumps([answer, {"weather": "rain"}]),
    "a string in a response": lambda answer: json.dumps({"ok": 1, "result": json.dumps(answer)}),
    "twice a string": lambda answer: json.dumps({"ok": json.dumps({"x": json.dumps(answer)})}),
    "HTTP": lambda answer: f"HTTP/1.1 200 OK\r\nx: y\r\n\r\n{json.dumps(answer)}",
    "words": lambda answer: f"{{it's}} \"{json.dumps(answer, ensure_ascii=False)}. So: {{x}}",
    "a fence": lambda answer: f"See:\n```json\n{json.dumps(answer, indent=1)}\n```\nEnd.",
    "an event": lambda answer: f"event: m\ndata: {json.dumps(answer)}\n\n",
    "lines of JSON": lambda answer: (
        json.dumps({"type": "tool_result", "content": json.dumps(answer)}) + '\n{"a": 1}\n'
    ),
    "bytes": lambda answer: repr(json.dumps(answer, ensure_ascii=False).encode()),
    "Python": lambda answer: f"print -> {answer!r}",
    "HTML in XML": lambda answer: f"<tool>{html.escape(json.dumps(json.dumps(answer)))}</tool>",
    "a script": lambda answer: f"<script>x = {for_javascript(answer)};</script>",
    "truncated": lambda answer: json.dumps(answer)[:-60],
    "truncated in a string": lambda answer: json.dumps({"x": json.dumps(answer)})[:-60],
    "truncated within": lambda answer: re.sub(
        r"(?s)(.{500}).*?(\}.{200})$", r"\1 … [cut] … \2", json.dumps(answer)
    ),
    "a URL": lambda answer: f"https://x.example/?q={quote(json.dumps(answer))}&n=1",
    "a form": lambda answer: f"q={quote_plus(json.dumps(answer))}&n=1",
    "quoted": lambda answer: indent(json.dumps(answer, indent=2), "> "),
    "numbered": lambda answer: "\n".join(
        f"{place:6}\t{line}" for place, line in enumerate(json.dumps(answer, indent=2).split("\n"))
    ),
    "added": lambda answer: indent(json.dumps(answer, indent=2), "+"),
}
ASKED = {
    "recall": {"query": "Which wire overheated?"},
    "search": {"query": "Which wire overheated?"},
    "remember": {"messages": [{"content": "I live in Porto."}]},
    "facts_as_of": {},
    "timeline": {"entity": "Derek"},
    "get_drawer": {"id": "W-1/R-1/D-1"},
}


def answer_of(palace, name, asked):
    tool = TOOLS[name]
    outputs = tool.run(Caller.at_home(palace.owner, None), tool.request.model_validate(asked))
    return outputs.model_dump(mode="json")


@pytest.fixture
def lived_in(palace):
    said = Turn("1", "user", "I live in Porto and Derek lives in Lisbon.", START)
    return furnish_with(palace, BATTERY, Transcript("plain", "homes", "", (said,)))


def test_an_answer_of_ours_is_no_new_memory_in_any_envelope(lived_in):
    before = Drawer.objects.count()
    for name in ("search", "recall"):
        answer = answer_of(lived_in, name, ASKED[name])
        assert BATTERY.turns[0].text in json.dumps(answer)
        turns = tuple(Turn(each, "tool", wrap(answer), START) for each, wrap in ENVELOPES.items())
        filed = file_transcript(lived_in, Transcript("turns", name, "", turns))
        assert (filed.stored, filed.skipped) == (0, {OURS: len(ENVELOPES)})
    assert Drawer.objects.count() == before


def said_by_rest(palace):
    """Answers of the REST API, by the endpoint."""
    program = client_of(palace.owner)
    asked = {"query": "Which wire of the battery overheated? Who lives in Porto or Lisbon?"}
    answers = [program.post(path, asked) for path in ("/recall", "/search")]
    fact = f"/v1/memories/{Fact.objects.within(palace).order_by('pk')[0].memory}/"
    answers += [program.get(fact), program.get(f"{fact}history/"), program.get("/v1/drawers/")]
    return [json.loads(answer.content) for answer in answers]


@pytest.mark.some(8)
@pytest.mark.parametrize("name", WITHIN)
def test_nor_is_what_another_text_has_of_an_answer(lived_in, name):
    answers = [answer_of(lived_in, name, ASKED[name]) for name in ("search", "recall")]
    answers += [answer_of(lived_in, "facts_as_of", {}), *said_by_rest(lived_in)]
    known = re.compile("wire|wiring|overheat|Porto|Derek")
    assert all(map(known.search, map(json.dumps, answers)))
    turns = [
        Turn(f"{role} {place}", role, WITHIN[name](answer), START)
        for role in ("tool", "assistant")
        for place, answer in enumerate(answers)
    ]
    file_transcript(lived_in, Transcript("turns", "new", "", tuple(turns)))
    kept = Drawer.objects.filter(conversation="new").in_order()
    assert [each.text for each in kept if known.search(each.text)] == []


@pytest.mark.some(8)
@pytest.mark.parametrize("name", WITHIN)
def test_what_names_nothing_of_the_palace_stays_to_the_byte(lived_in, name):
    answer = json.dumps(answer_of(lived_in, "search", ASKED["search"]))
    answer = json.loads(re.sub("(?<=-)[0-9a-f]{12}", "0123456789ab", answer))
    text = WITHIN[name](answer)
    mine = WITHIN[name](answer_of(lived_in, "search", ASKED["search"]))
    turns = (
        *(Turn(role, role, text, START) for role in ("tool", "assistant")),
        Turn("user", "user", mine, START),
    )
    file_transcript(lived_in, Transcript("turns", "new", "", turns))
    kept = Drawer.objects.filter(conversation="new").in_order()
    assert [each.text for each in kept] == [text, text, mine]


@pytest.mark.parametrize(
    ("around", "left"),
    [
        ("Here:\n{}\nThat is all.", "Here:\n\nThat is all."),
        ("Here:\n```json\n{}\n```\nThat is all.", "Here:\n\nThat is all."),
        ("data: {}\n\n", None),
        ("```\n{}\n```", None),
        ('{{"status": 200, "body": {}}}', '{"status": 200, "body": }'),
        ("{} or {{x: [1, 2]}}, {{'a': 'b'}}", " or {x: [1, 2]}, {'a': 'b'}"),
    ],
)
def test_what_stands_around_an_answer_stays(lived_in, around, left):
    answer = json.dumps(answer_of(lived_in, "search", ASKED["search"]))
    turn = Turn("1", "assistant", around.format(answer), START)
    file_transcript(lived_in, Transcript("turns", "new", "", (turn,)))
    kept = Drawer.objects.filter(conversation="new").in_order()
    assert [each.text for each in kept] == [left] * (left is not None)


@pytest.mark.parametrize("name", ["facts_as_of", "get_drawer"])
def test_so_is_that_of_other_tools(lived_in, name):
    asked = dict(ASKED[name])
    if "id" in asked:
        asked["id"] = str(Drawer.objects.in_order()[0].uuid)
    answer = answer_of(lived_in, name, asked)
    turn = Turn("1", "tool", json.dumps(answer), START)
    filed = file_transcript(lived_in, Transcript("turns", "t", "", (turn,)))
    assert filed.skipped == {OURS: 1}


def test_what_another_tool_says_is_kept(lived_in, bob):
    drawer = str(Drawer.objects.in_order()[0].uuid)
    answer = answer_of(lived_in, "search", ASKED["search"])
    stranger = json.dumps({"results": [{"drawer": "6f1f3f0e-0b1f-4c55-8f55-0d6f0c3a7d11"}]})
    outputs = [
        json.dumps({"ticket": 7, "drawer": drawer, "note": "seen"}),
        f"See {drawer}.",
        stranger,
        json.dumps({"results": []}),
        json.dumps({"drawer": drawer, "note": "a reply of another tool"}) + " and more",
        "[" * 5_000 + drawer,
    ]
    turns = tuple(Turn(str(n), "tool", text, START) for n, text in enumerate(outputs))
    said = Turn("said", "user", json.dumps(answer), START)
    filed = file_transcript(lived_in, Transcript("turns", "t", "", (*turns, said)))
    assert (filed.stored, filed.skipped) == (len(outputs) + 1, {})
    kept = Drawer.objects.filter(conversation="t").in_order()
    assert [each.text for each in kept] == [*outputs, json.dumps(answer)]


def test_all_that_tools_answer_with_words_is_known_by_its_fields():
    for name in (*ASKED, "search_episodes", "update_fact", "delete_fact"):
        assert TOOLS[name].shown.output_schema["properties"].keys() <= FIELDS, name


def test_through_the_proxy_neither_is_kept_nor_kept_again(lived_in):
    answer = json.dumps(answer_of(lived_in, "search", ASKED["search"]))
    first = [
        {"role": "user", "content": f"{block_of()}\n\n{QUESTION}"},
        *({"role": "tool", "content": text} for text in [answer, json.dumps(block_of())] * 3),
    ]
    whole = [*first, {"role": "assistant", "content": "They are thin."}, "And the board?"]
    found = recall(lived_in, RecallRequest(QUESTION)).context
    name = tell(lived_in, *first, reply="They are thin.")
    assert tell(lived_in, *whole, {"role": "tool", "content": found}) == name
    assert conversations(lived_in) == {name: [QUESTION, "They are thin.", "And the board?"]}


def test_through_the_proxy_the_rest_of_a_message_is_kept(lived_in):
    answer = json.dumps(answer_of(lived_in, "search", ASKED["search"]))
    sent = [
        {"role": "user", "content": answer},
        {"role": "assistant", "content": f"I found this:\n```json\n{answer}\n```"},
        {"role": "tool", "content": f"data: {answer}\n\n"},
    ]
    history = without_our_answers(read_history(sent), lived_in)
    assert [each.text for each in history.said] == [answer, "I found this:\n"]
    assert history.answered == 2


@pytest.mark.parametrize(
    "shape",
    [
        BLOCK_START,
        f"{BLOCK_START} Seal: 0123456789ab\n",
        f"{BLOCK_START} Seal: 0123456789ab{BLOCK_END}",
        json.dumps(f"{BLOCK_START} Seal: 0123456789ab &amp;amp;"),
        "&lt;memory_context&gt;\\\\n",
        "&amp;",
        "\\",
    ],
    ids=range(7),
)
@pytest.mark.parametrize("end", ["", BLOCK_END])
def test_looking_for_blocks_takes_linear_time(shape, end):
    def cpu_s(times):
        text = shape * times + end
        began = time.process_time()
        own_words("tool", text)
        return time.process_time() - began

    few = min(cpu_s(1_000) for _ in range(3))
    many = min(cpu_s(4_000) for _ in range(3))
    assert many < 9 * few + 0.01
