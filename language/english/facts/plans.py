"""What people want, and what is going to be."""

from __future__ import annotations

import re
from collections.abc import Iterator

from language.candidate import Candidate
from language.english.facts.claim import PAST_TENSES, Claim, without_reasons
from language.english.facts.dates import When, read_ahead
from language.english.facts.grammar import Tense, Verb, without_fillers
from language.english.facts.patterns_events import DATED_STEPS, GREAT_STEPS, is_life
from language.english.facts.phrasing import sentence, third


def plans_of(claim: Claim, tail: str, when: When) -> Iterator[Candidate]:
    verb = claim.verb
    said = without_reasons(_ASIDE.split(tail)[0])
    if not said or re.search(r"\byou(?:r|rs)?\b|·", said) or len(said.split()) > 12:
        return
    dated = when.at is not None and when.at.date() > claim.said_at.date()
    wide = verb.lemma in GREAT_STEPS and len(said.split()) > 1
    if (
        not wide
        and not (dated and verb.lemma in DATED_STEPS)
        and not is_life(f"{verb.lemma} {said}")
    ):
        return
    if _ERRAND.match(f"{verb.lemma} {said}"):
        return
    if (when.at is not None and not dated) or re.match(
        r"(?:an?|the)? ?(?:few|couple|bit|lot)\b", said
    ):
        return
    yield _plan(claim, "plans", f"{verb.lemma} {said}", when, negated=verb.negated)


def wishes_of(claim: Claim) -> Iterator[Candidate]:
    """ "I'd love to learn to sail", "we're planning to move"."""
    verb = claim.verb
    if verb.tense in PAST_TENSES or (verb.tense is Tense.PERFECT and verb.lemma != "plan"):
        return
    to = _wished(verb, f"{verb.tail} {claim.lead}".strip())
    if to is None:
        return
    what, when = read_ahead(to["what"], claim.said_at)
    said = without_reasons(without_fillers(what))
    if not said or not _is_plain(said):
        return
    planned = verb.lemma in ("plan", "intend", "aim", "save")
    if verb.lemma == "consider" or (
        not is_life(said)
        and not (planned and re.match(r"(?:an?|our|my|visiting|moving|going)\b", said))
    ):
        return
    yield _plan(claim, "plans" if planned else "wants", said, when, negated=verb.negated)


def _wished(verb: Verb, raw: str) -> re.Match[str] | None:
    """What is wanted: "to sail"; of what one is planning also "a trip"."""
    to = re.match(r"(?:(?:to|on)\s+|up to\s+)(?P<what>.+)", raw)
    if to is None and verb.tense is Tense.PROGRESSIVE and verb.lemma == "plan":
        to = re.match(r"(?P<what>(?:an?|our|my) .+)", raw)
    return to


def _is_plain(said: str) -> bool:
    """Whether it is short, of nobody else, and more than an errand."""
    return not (
        re.search(r"\byou(?:r|rs)?\b|·", said)
        or len(said.split()) > 12
        or re.match(r"(?:an?|the)? ?(?:few|couple|bit|lot)\b", said)
        or _ERRAND.match(said)
    )


# Where a date was taken out, or something is asked for, another thought begins.
_ASIDE = re.compile(r" ,|, (?=[^,]*\bplease\Z)")
# What is over by tomorrow.
_ERRAND = re.compile(
    r"(?:(?:an?|the|my|our) )?(?:(?:quick|little|shopping|grocery|day) )*(?:trip|run|outing)(?:"
    r" to (?:the )?"
    r"(?:\w+ )?(?:park|store|stores|mall|gym|supermarket|market|shops?|walmart|target|ikea"
    r"|costco)\b|\Z)"
    r"|(?:shopping|grocery) |meet(?:ing)? (?:with )?(?:my|our|the)\b",
    re.IGNORECASE,
)


def _plan(claim: Claim, predicate: str, what: str, when: When, *, negated: bool) -> Candidate:
    verb = "plan" if predicate == "plans" else "want"
    infinitive = not re.match(r"(?:an?|our|my)\b|\w+ing\b", what)
    says = f"{verb} {'to ' if infinitive else ''}{what}"
    ended = claim.verb.ended
    return Candidate(
        type="fact",
        subject=claim.person.thing,
        predicate=predicate,
        object=third(what),
        text=sentence(
            claim.person.label, third(says), tense=Tense.PRESENT, negated=negated, ended=ended
        ),
        words=(claim.words,),
        negated=negated,
        corrects=claim.corrects,
        valid_from=when.at or when.since,
        confidence=0.7,
    )
