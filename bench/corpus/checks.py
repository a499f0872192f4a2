"""Check the corpus: ids, dates, quoted words, copies, frames, and questions that say too much."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import pairwise
from pathlib import Path

from bench.corpus import (
    CORPUS,
    EVENTS,
    KINDS,
    OWNER,
    PARTS,
    QUESTION_TYPES,
    REASONS,
    STANCES,
    Asked,
    Person,
    Stated,
    Talk,
    read_people,
)
from language.transcripts import Turn

# A copy is a message of so many words that stands twice.
COPY_WORDS = 6
# A frame is a sentence of which only the commonest words are kept: at least so many, and no frame
# is used more often than this.
COMMON_WORDS, FRAME_WORDS, FRAME_USES = 200, 7, 5
CLOSING = ("changes", "ends", "corrects")

_WORD = re.compile(r"\w+(?:['’]\w+)*")
_SENTENCE = re.compile(r"(?<=[.!?…])\s+|\n+")
_DATE = re.compile(r"\d{4}(-\d{2}(-\d{2})?)?")
_FUNCTION_WORDS = frozenset(
    "what when where which whose whom does have been with from that this they them their there then"
    " than about after before would could should will were your yours mine ours into over under"
    " ever most more much many some such only also just like both each other said tell told name"
    " because while during still again didn’t don’t didn't don't".split()
)


def everybody(corpus: Path = CORPUS) -> list[Person]:
    """
    Raises:
        BadCorpus: a file is missing or not in its form.
    """
    return [person for part in PARTS for person in read_people(corpus / part)]


def faults(people: Sequence[Person]) -> Iterator[str]:
    """A sentence a fault."""
    for person in people:
        found = [*_of_talk(person.talk), *_of_questions(person), *_of_facts(person)]
        yield from (f"{person.talk.id} {fault}" for fault in found)
        # Who reads a conversation by itself does not know what was stated before.
        again = _of_facts(replace(person, facts=person.second), by_itself=True)
        yield from (f"{person.talk.id} second {fault}" for fault in again)
    talks = [person.talk for person in people]
    yield from _copies(talks)
    yield from _frames(talks)


def totals(people: Sequence[Person]) -> dict[str, int]:
    """Sizes by name."""
    found: Counter[str] = Counter()
    for person in people:
        found["people"] += 1
        found[f"people of {person.talk.part}"] += 1
        found[f"people in {person.talk.languages[0]}"] += 1
        found["conversations"] += len(person.talk.transcripts)
        found["messages"] += len(person.talk.turns())
        found["questions"] += len(person.questions)
        found.update(f"questions: {asked.type}" for asked in person.questions)
        stated = [fact for fact in person.facts if fact.event != "none"]
        found["facts"] += len(stated)
        found["facts about the owner"] += sum(fact.subject == OWNER for fact in stated)
        found["messages with a fact"] += len({fact.at for fact in stated})
        found["words that are no fact"] += len(person.facts) - len(stated)
        found["conversations annotated twice"] += len({fact.conversation for fact in person.second})
    return dict(sorted(found.items()))


def _of_talk(talk: Talk) -> Iterator[str]:
    for id_, kind in talk.kinds.items():
        if kind not in KINDS:
            yield f"{id_}: {kind} is no kind of conversation."
    if len(talk.kinds) != len(talk.transcripts):
        yield "has two conversations of one id."
    turns = talk.turns().values()
    yield from (f"{turn.external_id}: has no text." for turn in turns if not turn.text)
    yield from (f"{turn.external_id}: has no offset from UTC." for turn in turns if _is_naive(turn))
    if empty := [each.external_id for each in talk.transcripts if not each.turns]:
        yield f"{empty[0]}: has no message."
    elif not any(map(_is_naive, turns)):
        yield from _out_of_order(talk)


def _is_naive(turn: Turn) -> bool:
    return turn.said_at.tzinfo is None


def _out_of_order(talk: Talk) -> Iterator[str]:
    for before, after in pairwise(talk.transcripts):
        if after.turns[0].said_at < before.turns[-1].said_at:
            yield f"{after.external_id}: begins before {before.external_id} ends."


def _of_questions(person: Person) -> Iterator[str]:
    yield from _twice([each.id for each in person.questions])
    turns = person.talk.turns()
    for asked in person.questions:
        missing = [name for name in asked.evidence if name not in turns]
        if missing:
            yield f"{asked.id}: there is no message {missing[0]}."
            continue
        said = [turns[name] for name in asked.evidence]
        yield from (f"{asked.id}: {fault}" for fault in _of_question(asked))
        yield from (f"{asked.id}: {fault}" for fault in _given_away(asked, [t.text for t in said]))
        if any(turn.said_at > datetime.fromisoformat(asked.asked) for turn in said):
            yield f"{asked.id}: is asked before its evidence was said."


def _of_question(asked: Asked) -> Iterator[str]:
    if asked.type not in QUESTION_TYPES:
        yield f"{asked.type} is no type."
    if bool(asked.evidence) == (asked.type == "unanswerable"):
        yield "evidence belongs to all questions but unanswerable ones."
    if bool(asked.as_of) != (asked.type == "as-of") or not _is_date(asked.as_of):
        yield "a day that is asked about belongs to questions of the type as-of."


def _given_away(asked: Asked, said: Sequence[str]) -> Iterator[str]:
    answer = _content(asked.answer)
    if asked.evidence and answer and answer <= _content(asked.text):
        yield "the question holds its answer."
    shared = _content(asked.text) & _content(" ".join(said))
    if asked.type == "other-words" and shared:
        yield f"shares {', '.join(sorted(shared))} with its evidence."


def _of_facts(person: Person, *, by_itself: bool = False) -> Iterator[str]:
    yield from _twice([each.id for each in person.facts])
    turns = person.talk.turns()
    places = {name: place for place, name in enumerate(turns)}
    earlier: set[str] = set()
    last = 0
    for fact in person.facts:
        if fact.at not in turns:
            yield f"{fact.id}: there is no message {fact.at}."
            continue
        if not fact.words or fact.words not in turns[fact.at].text:
            yield f"{fact.id}: {fact.at} does not say {fact.words!r}."
        if places[fact.at] < last:
            yield f"{fact.id}: stands after one that is said later."
        last = places[fact.at]
        check = _of_no_fact if fact.event == "none" else _of_fact
        yield from (f"{fact.id}: {fault}" for fault in check(fact))
        if fact.event in CLOSING and not (fact.closes or by_itself):
            yield f"{fact.id}: {fact.event} what?"
        if unknown := [name for name in fact.closes if name not in earlier]:
            yield f"{fact.id}: closes {unknown[0]}, which is no earlier fact."
        earlier |= {fact.id} if fact.event != "none" else set()


def _of_no_fact(fact: Stated) -> Iterator[str]:
    if fact.why not in REASONS:
        yield f"{fact.why!r} is no reason."
    if fact.subject or fact.predicate or fact.value or fact.closes:
        yield "words that are no fact state nothing."


def _of_fact(fact: Stated) -> Iterator[str]:
    if fact.event not in EVENTS:
        yield f"{fact.event} is no event."
    if not (fact.subject and fact.predicate and fact.value) or fact.why:
        yield "a fact has a subject, a predicate and a value, and no reason."
    if fact.stance not in STANCES:
        yield f"{fact.stance} is no stance."
    if not (_is_date(fact.since) and _is_date(fact.until)):
        yield "a date is the beginning of an ISO date."
    elif fact.until and fact.until < fact.since[: len(fact.until)]:
        yield "ends before it begins."


def _is_date(text: str) -> bool:
    return not text or bool(_DATE.fullmatch(text))


def _twice(ids: Sequence[str]) -> Iterator[str]:
    counted = Counter(ids)
    yield from (f"{id_}: stands {counted[id_]} times." for id_ in counted if counted[id_] > 1)


def _copies(talks: Sequence[Talk]) -> Iterator[str]:
    where: defaultdict[str, list[str]] = defaultdict(list)
    for talk in talks:
        for name, turn in talk.turns().items():
            words = _WORD.findall(turn.text.casefold())
            if len(words) >= COPY_WORDS:
                where[" ".join(words)].append(f"{talk.id} {name}")
    for places in where.values():
        if len(places) > 1:
            yield f"The same message stands in {', '.join(places)}."


def _frames(talks: Sequence[Talk]) -> Iterator[str]:
    sentences = [
        _WORD.findall(sentence.casefold())
        for talk in talks
        for turn in talk.turns().values()
        for sentence in _SENTENCE.split(turn.text)
    ]
    counted = Counter(word for sentence in sentences for word in sentence)
    common = {word for word, _ in counted.most_common(COMMON_WORDS)}
    frames: Counter[str] = Counter()
    for sentence in sentences:
        kept = [word if word in common else "_" for word in sentence]
        if len(kept) - kept.count("_") >= FRAME_WORDS:
            frames[re.sub(r"_( _)+", "_", " ".join(kept))] += 1
    for frame, number in frames.most_common():
        if number > FRAME_USES:
            yield f"The frame “{frame}” is used {number} times."


def _content(text: str) -> set[str]:
    """Its words of four letters or more; enough to see whether two texts share any."""
    return {word for word in _WORD.findall(text.casefold()) if len(word) > 3} - _FUNCTION_WORDS
