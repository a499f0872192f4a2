"""Whatever anybody sends, twice as much of it takes about twice the time to read."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from pydantic import BaseModel

from api.openai.chat_request import Said, read_history
from api.openai.conversation_matching import FiledMessage, align
from api.rest.parsing import read_json
from api.rest.problems import Problem
from chat.markdown import LONGEST, render_markdown
from chat.models import title_of
from language.analyzer import analyze
from language.english import judging
from language.english.dates import read_time
from language.english.facts.fact_reading import read_facts
from language.english.judging import words_of
from language.english.message_traits import read_traits
from language.english.questions import read_intent
from language.english.stated_preferences import preference_strength
from language.english.topics import draft
from language.english.topics.names import project_wing
from language.english.topics.phrases import candidate_phrases
from language.english.topics.tags import things, times
from language.english.topics.titles import Read
from language.english.topics.wings import is_real_title
from language.errors import BadPointer
from language.extraction import Context
from language.other_languages import noun_phrases
from language.slugs import slug_of
from language.storable import storable_label
from language.transcripts import Turn, prose
from llm.messages import Completion, parse_answer
from palace.models.hierarchy import Pointer
from palace.storage.indexing.passages import split_text
from palace.storage.own_answers import find_answers
from palace.storage.own_output import BLOCK_START, without_injected_memory
from palace.transfer import importers
from palace.transfer.importers.message_forms import text_of
from palace.views.inbox.proposal_rows import changes, likeness
from palace.views.search import snippet_of
from tests.slow_texts import texts, times_slower
from tests.transfer.importers.exports import slack, slack_message, write_zip
from tests.transfer.importers.samples import SAMPLES

NOW = datetime(2026, 1, 5, tzinfo=UTC)
TEXTS = texts()
NO_ID = "00000000-0000-4000-8000-000000000000"
CHARS = 6_000
# These take a hundred times as long as the others, so that a shorter text shows how it grows.
CHARS_OF_SLOW = {"Markdown of a reply": 2_000, "facts of many messages": 2_000, "an answer": 2_000}


class Answer(BaseModel):
    right: bool


def turn(text, place=0):
    return Turn(str(place), "user", text, NOW)


def parsed(text):
    with suppress(ValueError):
        parse_answer(Completion(text, "m", 0, 0, "stop"), Answer)


def pointed(text):
    with suppress(BadPointer):
        Pointer.parse(text)


def read_body(text):
    with suppress(Problem):
        read_json(text.encode(errors="replace"))


READERS = {
    "the stripper": lambda text: without_injected_memory(turn(text)),
    "the stripper of answers": lambda text: list(find_answers(f"{NO_ID}{text}")),
    "facts": lambda text: read_facts([turn(text)]),
    "facts of many messages": lambda text: read_facts([turn(each) for each in text.split()]),
    "mining": lambda text: draft([turn(text)], None, Context()),
    "prose": prose,
    "phrases": lambda text: list(candidate_phrases(text)),
    "times": times,
    "things": lambda text: list(things(text)),
    "noun phrases": lambda text: list(noun_phrases(text, "fr")),
    "a project": lambda text: project_wing([Read(turn(text), text, asks=True)]),
    "a title of an export": is_real_title,
    "passages": lambda text: split_text(text, 900),
    "words": analyze,
    "preferences": lambda text: preference_strength(text, "user"),
    "traits": read_traits,
    "times of a question": lambda text: read_time(text, NOW),
    "intent": read_intent,
    "a pointer": pointed,
    "a slug": slug_of,
    "a label": storable_label,
    "a title": title_of,
    "a snippet": lambda text: snippet_of(text, (0, min(len(text), 1000)), {"ferri"}),
    "Markdown of a reply": lambda text: render_markdown(text[:LONGEST]),
    "a web page": text_of,
    "an answer": parsed,
    "a body": read_body,
    "statements": judging.plainly,
    "likeness": words_of,
    "changes of wording": lambda text: changes(text, text[::-1]),
    "likeness of facts": lambda text: likeness(text, text[::-1]),
}

# Each with what it was slow for, and with what is often slow.
SOON = [
    *[(name, "'# a', then spaces") for name in READERS],
    ("the stripper", repr(f"{BLOCK_START}\n")),
    ("the stripper of answers", repr('{"a":')),
    ("a web page", repr("<a ")),
    ("a web page", repr("<a '\">")),
    ("a web page", repr("<!--")),
    ("a web page", repr("a<")),
    ("an answer", repr("<think>")),
    ("an answer", "'```', then spaces"),
    ("Markdown of a reply", repr("[")),
    ("Markdown of a reply", repr("a*")),
    ("facts", repr("I like A and ")),
    ("mining", repr("A Name ")),
    ("times of a question", repr("on Monday and ")),
    ("intent", repr("A Name ")),
    ("changes of wording", repr("- ")),
]


@pytest.mark.parametrize(("reader", "name"), SOON, ids=str)
def test_reading_takes_time_by_the_length_of_a_text(reader, name):
    times_slower(READERS[reader], TEXTS[name], CHARS)


@pytest.mark.exhaustive
@pytest.mark.parametrize("reader", READERS)
def test_reading_takes_time_by_the_length_of_any_text(reader):
    check_all(READERS[reader], TEXTS, CHARS_OF_SLOW.get(reader, CHARS))


def check_all(read, makers, chars=CHARS):
    slow = {}
    for name, make in makers.items():
        try:
            times_slower(read, make, chars)
        except AssertionError as error:
            slow[name] = str(error)
    assert slow == {}


@pytest.mark.parametrize(
    "piece",
    [
        '{"id": {',
        '{"id": [{"id": 1, "text": 2, "role": "',
        '[{"id": 1, "text": 2, "role": 3}, [',
        "{\"a{'a",
        "{\"{'{",
        "{'a\"b'c",
        '{\\"id\\":',
        "{&quot;id%22\\u0022:",
        "\n> 1:{",
    ],
)
def test_looking_for_answers_takes_time_by_the_length_of_objects_within_others(piece):
    times_slower(lambda text: list(find_answers(text)), lambda n: NO_ID + piece * n, 500)


IMPORTED = ["'# a', then spaces", "lines between words", repr("<a "), repr("[")]


def reads(format_):
    """Reads a file of what it is given: [(id, text)]."""

    def read(file):
        with suppress(importers.BadImport):
            assert importers.detect(file, file.name) is format_
            for conversation in importers.read(file, format_):
                assert conversation.message_count

    return read


def files_of(tmp_path, format_, make):
    written = SAMPLES[format_.source]

    def file(size):
        return written(tmp_path / f"{size}.file", make(size))

    return file


@pytest.mark.parametrize("name", IMPORTED)
@pytest.mark.parametrize("source", importers.FORMATS)
def test_an_importer_takes_time_by_the_length_of_a_message(tmp_path, source, name):
    format_ = importers.FORMATS[source]
    times_slower(reads(format_), message(tmp_path, format_, TEXTS[name]), CHARS)


@pytest.mark.exhaustive
@pytest.mark.parametrize("source", importers.FORMATS)
def test_an_importer_takes_time_by_the_length_of_any_message(tmp_path, source):
    format_ = importers.FORMATS[source]
    makers = {name: message(tmp_path, format_, make) for name, make in TEXTS.items()}
    check_all(reads(format_), makers)


def message(tmp_path, format_, make):
    return files_of(tmp_path, format_, lambda size: [("1", make(size))])


@pytest.mark.some(4)
@pytest.mark.parametrize("source", importers.FORMATS)
def test_an_importer_takes_time_by_the_number_of_messages_of_one_id(tmp_path, source):
    format_ = importers.FORMATS[source]

    def make(size):
        return [("1717236000.000100", f"Ferry {place}") for place in range(size)]

    times_slower(reads(format_), files_of(tmp_path, format_, make), 700)


def test_many_channels_take_time_by_their_number(tmp_path):
    def file(size):
        days = {f"c{place}/2024-06-01": [slack_message("Q")] for place in range(size)}
        return write_zip(tmp_path / f"{size}.zip", slack(days))

    times_slower(reads(importers.SLACK), file, 300)


def test_a_file_in_an_archive_may_be_called_anything(tmp_path):
    def choose(name):
        return [each.members([name]) for each in importers.FORMATS.values()]

    times_slower(choose, lambda size: "gemini/" * size, CHARS)


@pytest.mark.parametrize("compare", [changes, likeness])
@pytest.mark.parametrize("words", ["from B to A ", "to A from C B ", "from A to "])
def test_two_wordings_of_the_same_few_words_take_time_by_their_length(compare, words):
    def both(size):
        return "from A to B " * size, words * size

    times_slower(lambda wordings: compare(*wordings), both, 50)


def test_a_long_name_above_a_long_list_takes_time_by_their_length():
    def body(size):
        return json.dumps({"n" * 10 * size: [0] * 10 * size}).encode()

    times_slower(read_json, body, 5_000)


@pytest.mark.parametrize("texts_sent", [["a"], ["a", "b"], ["a", "b", "b", "a", "c"]], ids=str)
def test_a_request_of_many_equal_messages_takes_time_by_their_number(texts_sent):
    def talk(size):
        contents = (texts_sent * size)[:size]
        messages = [{"role": "user", "content": text} for text in contents]
        kept = [
            FiledMessage(key, text, Said("user", text), key, NOW - timedelta(days=1), cut_off=True)
            for key, text in enumerate(reversed(contents))
        ]
        return read_history(messages), kept

    times_slower(lambda asked: align(*asked, NOW), talk, 1_000)
