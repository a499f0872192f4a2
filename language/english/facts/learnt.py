"""What a learned reader has marked in a message, where the rules find nothing in a sentence.

Its marks are taken for what it was found to be sure of: a few kinds of fact of which somebody has
one or a handful, and endings. An ending says only what is called so no longer: it acts where
something of that name is known, and says nothing otherwise. Names, dates and wording are read as
everywhere else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from language.english.facts import guards
from language.english.facts.amendments import ending
from language.english.facts.dates import When, read_when
from language.english.facts.mentioned import IT, THEY, About, about, somebody
from language.english.facts.people import Company
from language.english.facts.phrasing import article, sentence, third
from language.english.facts.rules import bare
from language.english.facts.sentences import BLOT, Clause, Sentence, clauses_of, spelt_out
from language.english.facts.verbs import Tense
from language.english.facts.vocabulary import DIET, role_in
from language.facts import Candidate, Thing, Words
from language.reading import Mention, Reading, Span

# From these scores on: chosen on people of the corpus and development scenarios.
SURE: Final = 0.9
MAY_END: Final = 0.3


@dataclass(frozen=True, slots=True)
class Phrase:
    """
    Attributes:
        says: The verb in its base form and what follows, `{shown}` with an article if there was
            one: "live in {said}".
        of: What the value is of its subject, instead of a verb: "birthday".
        kind: What the value is, where it has a name.
    """

    says: str = ""
    of: str = ""
    kind: str = ""


# The kinds that it reads well: of the others more than a third of its surest marks were wrong.
PHRASES: Final = {
    "age": Phrase("be {said}"),
    "birthday": Phrase(of="birthday"),
    "weight": Phrase(of="weight"),
    "from": Phrase("be from {shown}", kind="place"),
    "lives_in": Phrase("live in {shown}", kind="place"),
    "works_at": Phrase("work at {shown}", kind="organisation"),
    "works_as": Phrase("work as {shown}"),
    "studies": Phrase("study {said}"),
    "studies_at": Phrase("study at {shown}", kind="organisation"),
    "speaks": Phrase("speak {said}"),
    "learns": Phrase("learn {said}"),
    "drives": Phrase("drive {shown}", kind="item"),
    "diet": Phrase("eat {said}"),
    "has_condition": Phrase("have {shown}"),
    "takes": Phrase("take {said}"),
    "allergic_to": Phrase("be allergic to {said}"),
}
# A day in the sentence is not since when these are so.
_TIMELESS = frozenset({"age", "birthday", "from", "weight"})
# At the beginning of a sentence their values have a capital and are no names.
_COMMON = frozenset({"has_condition", "takes", "diet", "allergic_to"})
_WORK_STATES = frozenset({"retired", "unemployed", "freelance", "self-employed", "freelancing"})
_DETERMINER = re.compile(r"\b(?P<which>an?|the|my|our|his|her|their)\s+\Z", re.IGNORECASE)
_ADJECTIVE = re.compile(
    rf"(?:{DIET}|(?:\w+ )?(?:pregnant|(?:pre)?diabetic|coeliac|celiac|asthmatic|autistic|dyslexic"
    r"|epileptic|colou?r[- ]?blind|deaf|blind|bipolar|intolerant|allergic|anaemic|anemic|sober"
    r"|\w+-free|in remission|overweight|depressed|healed|injured))",
    re.IGNORECASE,
)


class Learnt:
    """The marks of one message, made into statements sentence by sentence."""

    def __init__(
        self, reading: Reading, text: str, at: int, said_at: datetime, company: Company
    ) -> None:
        self._reading, self._text, self._at = reading, text, at
        self._said_at, self._company = said_at, company
        self._named: dict[Mention, About | None] = {}
        self._somebody: About | None = None

    def said_in(self, one: Sentence) -> Iterator[Candidate]:
        """What the marks within a sentence say."""
        for mention in self._reading.mentions:
            if one.start <= mention.start and mention.end <= one.end:
                self._named[mention] = self._about(mention)
        for span in self._reading.values:
            if not (one.start <= span.start and span.end <= one.end) or span.void:
                continue
            whom = self._whom(span)
            if whom is not None and _is_meant(one, span):
                yield from self._said(span, one, whom)

    def _about(self, mention: Mention) -> About | None:
        """A pronoun is whoever the conversation, or else this message, named last."""
        said = self._text[mention.start : mention.end].strip()
        if IT.match(said):
            return None
        found = about(said, self._company)
        if found is None:
            return self._somebody if THEY.match(said) else None
        if found.person is not None and found.person is not self._company.me:
            self._somebody = found
        return found

    def _whom(self, span: Span) -> About | None:
        """None where nobody knows whom it is about."""
        if span.subject is None:
            return somebody(self._company.me)
        if span.subject not in self._named:
            self._named[span.subject] = self._about(span.subject)
        return self._named[span.subject]

    def _said(self, span: Span, one: Sentence, whom: About) -> Iterator[Candidate]:
        said = self._value(span, one)
        if not said:
            return
        if span.event in "-!":
            if span.score >= MAY_END and whom.person is not None:
                words = Words(self._at, one.start, one.end)
                yield ending(whom.person, said, one.text, words, corrects=span.event == "!")
        elif span.score >= SURE and span.predicate in PHRASES and not whom.several:
            yield self._statement(span, one, whom, said)

    def _value(self, span: Span, one: Sentence) -> str:
        at, end = span.start - one.start, span.end - one.start
        said = third(bare(spelt_out(one.text[at:end].strip(' .,:;!?()"'))))
        is_common = at == 0 and span.predicate in _COMMON and said[1:].islower()
        return (said.lower() if is_common else said).strip()

    def _statement(self, span: Span, one: Sentence, whom: About, said: str) -> Candidate:
        phrase = PHRASES[span.predicate]
        when = self._when(span, one)
        obj, says = _worded(span.predicate, said, _shown(said, one.text[: span.start - one.start]))
        text = f"{whom.of} {phrase.of} is {said}"
        if says:
            text = sentence(whom.label, says, tense=Tense.PRESENT, negated=False, ended=False)
        return Candidate(
            type="fact",
            subject=whom.thing,
            predicate=span.predicate,
            object=obj,
            text=text,
            words=(Words(self._at, *_reach(span)),),
            thing=Thing(obj, phrase.kind) if phrase.kind and obj[:1].isupper() else None,
            corrects=span.event == "=",
            valid_from=when.since or when.at,
            valid_to=when.until,
            confidence=round(span.score, 2),
        )

    def _when(self, span: Span, one: Sentence) -> When:
        if span.predicate in _TIMELESS:
            return When()
        _, when = read_when(_clause_at(one, span).text, self._said_at)
        return When(since=when.since, until=when.until) if span.predicate == "takes" else when


def _worded(predicate: str, said: str, shown: str) -> tuple[str, str]:
    """The object, and the verb with what follows; empty where it is no verb that says it."""
    says = PHRASES[predicate].says.format(said=said, shown=shown)
    if predicate in ("has_condition", "diet") and _ADJECTIVE.fullmatch(said):
        return said, f"be {said}"
    if predicate != "works_as":
        return said, says
    if said.lower() in _WORK_STATES:
        return said.lower(), f"be {said.lower()}"
    role = role_in(said)
    if role is None and said.split()[0].endswith("ing"):
        return said, f"work in {said}"
    return role or said, f"work as {said if said[:1].isupper() else article(said)}"


def _reach(span: Span) -> tuple[int, int]:
    subject = span.subject
    if subject is None:
        return span.start, span.end
    return min(span.start, subject.start), max(span.end, subject.end)


def _clause_at(one: Sentence, span: Span) -> Clause:
    around = (clause for clause in clauses_of(one) if clause.start <= span.start < clause.end)
    return next(around, Clause(one.text, one.start, one.end))


def _is_meant(one: Sentence, span: Span) -> bool:
    """Whether nothing before the value makes it a condition, a report or the text to be written."""
    start, end = span.start - one.start, span.end - one.start
    before = one.text[max(0, _clause_at(one, span).start - one.start) : end]
    if BLOT in one.text[start:end] or guards.is_open(before) or guards.is_reported(before):
        return False
    return not guards.asks_for_text(one.text[:end])


def _shown(said: str, before: str) -> str:
    found = _DETERMINER.search(before)
    which = found["which"].lower() if found else ""
    if not which or said[:1].isdigit():
        return said
    return article(said) if which in ("a", "an") else f"{third(which)} {said}"
