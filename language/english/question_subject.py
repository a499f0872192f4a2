"""The subject of a question: its terms without greetings, dates and words about remembering."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Protocol

from language.analyzer import analyze
from language.english.dates.time_intent import TimeIntent
from language.english.intent import Intent, read_intent

# Words of questions about the memory itself. A question made of these alone, such as "What did I
# tell you last week?", has no subject that a message could be close to.
_OF_MEMORY = frozenset(
    analyze(
        "ask asked answer chat chatted conversation conversations discuss discussed discussion "
        "hear heard know known mention mentioned message messages talk talked told say said speak "
        "spoke spoken remember remembered remind recall recap memory memories summary summarise "
        "summarize overview list topic topics"
    )
)
# Words of greetings and polite replies, and words that stand for others.
_PLAIN = frozenset(
    analyze(
        "hi hello hey good morning afternoon evening night day dear welcome thank thanks please ok "
        "okay yes yeah yep sure great fine nice cool right more continue go going done happen "
        "happened last latest recent recently ago first next previous earlier later today "
        "yesterday tell tomorrow week weekend month year time give show let again "
        "really maybe also us thing things stuff anything something everything nothing"
    )
)

# Words for the asker and their people. A program asks about "the user".
_OURS = re.compile(
    r"\b(?:my|mine|our|ours|we|us|the users?)\b"
    r"|\b(?:can|could|do|did|would|have|had|am|was|must|should)(?:not|n['’]t) I\b"
    r"|\b(?:book|buy|choose|cook|pick|plan|recommend|suggest) me\b",
    re.IGNORECASE,
)
_ORDER = re.compile(r"^\W*(?:please )?(?:give|show|send) me\b", re.IGNORECASE)
_SOMEBODY = re.compile(r"\b(?:he|him|his|she|hers?|they|them|their)\b", re.IGNORECASE)


class Question(Protocol):
    """A question that has been read; `terms` are those of the analyzer."""

    @property
    def text(self) -> str: ...

    @property
    def terms(self) -> tuple[str, ...]: ...

    @property
    def time(self) -> TimeIntent: ...

    @property
    def intent(self) -> Intent: ...


def is_personal(query: Question) -> bool:
    """Whether a question is about the user, their people, or what was said."""
    # "Give me five synonyms" is about nobody.
    text = _ORDER.sub("", query.text)
    intent = query.intent if text == query.text else read_intent(text)
    about_us = intent.asks_user or intent.asks_assistant or bool(_OURS.search(text))
    return about_us or _refers_back(text)


def _refers_back(text: str) -> bool:
    """Whether a pronoun stands for a person whom the question itself does not name.

    "Where does she work?" does; "How do bees find their hive?" does not.
    """
    pronoun = _SOMEBODY.search(text)
    return pronoun is not None and not _naming(analyze(text[: pronoun.start()]))


def subject_of(query: Question) -> frozenset[str]:
    """The terms that name the subject of a question; none for "hi" and "what did I say?"."""
    dated = [term for period in query.time.periods for term in analyze(period.text)]
    return _naming(query.terms) - frozenset(dated)


def _naming(terms: Iterable[str]) -> frozenset[str]:
    return frozenset(terms) - _OF_MEMORY - _PLAIN


def asks_for_all(query: Question) -> bool:
    """Whether a question asks for all memories, of no subject: "what do you know about me?"."""
    intent = query.intent
    of_memory = bool(_OF_MEMORY & set(query.terms)) or intent.asks_user or intent.asks_assistant
    return of_memory and not subject_of(query)


def is_plain(query: Question) -> bool:
    """Whether a message is a greeting or a reply, and no question: "hi", "good morning", "yes"."""
    return not (subject_of(query) or asks_for_all(query) or query.time.periods)
