"""From what a clause says of somebody to candidates."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from language.english.facts.changes import is_for_now
from language.english.facts.events_and_plans import EVENTS, GREAT_STEPS, MOVES, plans_of, wishes_of
from language.english.facts.patterns_health import HEALTH
from language.english.facts.patterns_identity import HOME, IDENTITY
from language.english.facts.patterns_study import STUDY
from language.english.facts.patterns_tastes import TASTES, habits_of
from language.english.facts.patterns_work import WORK
from language.english.facts.people import lives_apart
from language.english.facts.rules import (
    PAST_TENSES,
    Claim,
    Mode,
    Rule,
    When,
    bare,
    phrase_of,
    read_ahead,
    read_when,
)
from language.english.facts.verbs import PAST, Tense, Verb, without_fillers
from language.english.facts.vocabulary import is_product, role_in, small_name
from language.english.grammatical_person import SEVERAL, article, listed, sentence, third
from language.facts import USER, Candidate, Thing

TABLES = (IDENTITY, HOME, WORK, STUDY, HEALTH, TASTES, EVENTS)
_PLACE = re.compile(
    r"\A(?:(?:a|the|an) [^,]*?(?:near|in|outside|by|of) )?(?:(?:the|a|central|downtown"
    r"|northern|southern|eastern|western|north|south|east|west) )*"
    r"[A-ZÀ-ÖØ-ÞĀ-Ž][\w.'’-]*(?:[ -](?:(?:de|la|del|upon|am|an|der|of"
    r"|the) )?[A-ZÀ-ÖØ-ÞĀ-Ž][\w.'’-]*)*(?:, (?!I\b)[A-Z][\w.'-]+(?: [A-Z][\w.'-]+)*)?"
)
_LATELY = re.compile(r"\s(?:recently|lately|again|before|twice|once|together|a few times)\Z")
_NO_PLACE = re.compile(
    r",| (?:with|from|w/?|until|because|bc|cuz|since|rn|atm|and|but"
    r"|for (?:good|now|work|life|uni))(?: |\Z)"
)
# "In Rotterdam, no sorry, Dordrecht": the word before was a slip.
_MISSPOKEN = re.compile(
    r"\s\S+,? (?:no,? (?:wait|sorry)|sorry|I mean|I meant|no wait|or rather),? (?=[A-Z\d])"
)
_NAMED = re.compile(r"(?:the |my )?[\w'&.-]+(?: [A-Z][\w'&.-]+)*")
_LASTING = frozenset({Tense.PRESENT, Tense.PERFECT, Tense.PROGRESSIVE, Tense.CAN})
_LISTED = re.compile(r"\A(?!.*\bwith\b).*(?:,| and | or | & )")
_WISHING = frozenset("want hope plan intend aim save consider try".split())
# Where one of these is said, further rules would say the same in other words.
_ENOUGH = frozenset({"works_at", "lives_in", "diet", "nationality", "has_condition", "likes"})
# "I was never allergic to it" takes back what was said.
_DIAGNOSED = frozenset({"allergic_to", "has_condition", "lives_in", "works_at", "married_to"})
_HOLIDAY = re.compile(
    r"\bto [A-Z].* (?:for|on) (?:my|our|a) (?:honeymoon|holidays?|vacation|anniversary|birthday)\Z"
)
# "At Tesco stacking shelves nights".
_SHIFTS = re.compile(r" (?:[a-z]+ing|nights|days|evenings|weekends|(?:part|full)[- ]time)\b.*")
_DID = frozenset(word for word, verb in PAST.items() if word != verb and not word.endswith("ed"))
# "I haven't eaten meat in years".
_IN_YEARS = re.compile(r"\bin (?=(?:[\w-]+ ){0,2}(?:weeks|months|years)\b)")
_ABSTAINED = frozenset({"diet", "smokes", "drinks_alcohol"})
_ALL_ALONG = re.compile(
    r"(?i)\b(?:since|for (?!the|my|our)|in (?:[\w-]+ )?(?:weeks|months|years)|all my life|lately"
    r"|recently)\b"
)


def candidates_of(claim: Claim) -> Iterator[Candidate]:
    """What the claim says, none where it is nothing worth keeping."""
    verb = claim.verb
    if verb.tense is Tense.WOULD or verb.lemma in _WISHING:
        yield from wishes_of(claim)
        return
    tail = f"{verb.tail} {claim.lead[:1].lower()}{claim.lead[1:]}".strip()
    tail = _MISSPOKEN.sub(" ", tail)
    if verb.negated and verb.tense is Tense.PERFECT:
        tail = _IN_YEARS.sub("for ", tail)
    read = read_ahead if verb.tense is Tense.FUTURE or _tells_of_plans(verb) else read_when
    tail, when = read(tail, claim.said_at)
    tail = without_fillers(tail)
    dropped = verb.negated and verb.tense is Tense.PROGRESSIVE and verb.lemma in GREAT_STEPS
    ahead = _is_ahead(when, claim) or _HOLIDAY.search(tail) is not None
    if verb.tense is Tense.FUTURE or dropped or (ahead and _tells_of_plans(verb)):
        yield from plans_of(claim, tail, when)
        return
    found = False
    for candidate in _by_rules(claim, tail, when):
        found = True
        yield candidate
    if not found:
        yield from habits_of(claim, tail, when)


def _is_ahead(when: When, claim: Claim) -> bool:
    return when.at is not None and when.at.date() > claim.said_at.date()


def _tells_of_plans(verb: Verb) -> bool:
    return verb.tense is Tense.PROGRESSIVE or (verb.tense is Tense.PRESENT and verb.lemma in MOVES)


def _by_rules(claim: Claim, tail: str, when: When) -> Iterator[Candidate]:
    taken: set[str] = set()
    for table in TABLES:
        for rule in table.get(claim.verb.lemma, ()):
            if rule.dated and (when.at is None or when.at.date() >= claim.said_at.date()):
                continue
            match = rule.tail.match(tail)
            if match is None or rule.predicate in taken or not _suits(rule, claim, when):
                continue
            made = list(_made(rule, match, claim, when))
            if made:
                taken.add(rule.predicate)
                yield from made
            if made and (rule.predicate in _ENOUGH or rule.mode is Mode.EVENT):
                if rule.object == "job" and rule.mode is Mode.ENDED:
                    continue  # "I was laid off" is an event as well.
                return


def _suits(rule: Rule, claim: Claim, when: When) -> bool:
    """Whether the rule's verb can be meant in this tense, of this subject, at this time."""
    return _can_be_said_of(rule, claim, when) and _can_be_said_in(rule, claim)


def _can_be_said_of(rule: Rule, claim: Claim, when: When) -> bool:
    relation = claim.person.relation
    if relation is not None and relation.animal and not rule.animals:
        return False
    if claim.person.role in SEVERAL and rule.predicate == "age":
        return False
    if rule.kin and not (when.at is None and lives_apart(claim.person.role)):
        return False
    if not rule.since or when.since is not None:
        return True
    # "I'm now at Bosch"; "I'm at IKEA now" is said in the queue.
    now = {"now", "nowadays"} if rule.kind == "place" else {"now"}
    return rule.or_now and (claim.verb.ended or not now.isdisjoint(claim.verb.adverbs))


def _can_be_said_in(rule: Rule, claim: Claim) -> bool:
    """Whether the rule's verb can be meant in this tense."""
    verb = claim.verb
    if rule.flips:
        return verb.negated
    if rule.mode is Mode.STATE and verb.tense is Tense.PERFECT and not _lasts(rule, claim):
        return False
    if not rule.past and verb.tense is Tense.PAST:
        return False
    if rule.mode is Mode.STATE:
        return verb.tense in _LASTING or (
            verb.tense in PAST_TENSES and (not verb.negated or rule.predicate in _DIAGNOSED)
        )
    return not verb.negated and _has_happened(rule, verb)


def _has_happened(rule: Rule, verb: Verb) -> bool:
    """ "I sold it", not "I've been selling eggs"."""
    if verb.ongoing and rule.mode in (Mode.ENDED, Mode.EVENT):
        return False
    if verb.lemma == "leave" and (first := _NAMED.match(verb.tail)):
        return not is_for_now(verb.tail[first.end() :])
    if rule.mode is Mode.EVENT and rule.dated:
        return verb.tense is Tense.PAST
    return verb.tense in (Tense.PAST, Tense.PERFECT)


def _lasts(rule: Rule, claim: Claim) -> bool:
    """ "I have lived here since May" goes on; "I've played chess before" tells of once."""
    verb = claim.verb
    if verb.negated and not verb.ended:
        always = "never" in verb.adverbs or _ALL_ALONG.search(verb.tail) is not None
        return rule.predicate in _ABSTAINED and always
    if rule.predicate not in ("does", "learns", "likes", "works_on", "uses", "speaks", "smokes"):
        return True
    return (
        bool(_ALL_ALONG.search(f"{verb.tail} {claim.lead}"))
        or "always" in verb.adverbs
        or verb.ongoing
    )


def _made(rule: Rule, match: re.Match[str], claim: Claim, when: When) -> Iterator[Candidate]:
    whole = match.groupdict().get("o") or ""
    parts = _members(whole) if rule.many and _LISTED.search(whole) else [whole]
    for part in parts:
        if rule.kind == "organisation" and part[:1].isupper():
            part = _SHIFTS.sub("", part)
        said = (
            phrase_of(part, to_comma=rule.to_comma) if "o" in match.groupdict() and part else part
        )
        if said is None or (said and rule.accepts and not rule.accepts(said)):
            continue
        if not said and whole:
            continue
        filled = _filled(rule, said, match)
        # "She married Tom", where nobody else was named, does not make Tom "she".
        if filled is not None and filled.object != claim.person.thing.name:
            yield _candidate(rule, filled, claim, when)


def _members(whole: str) -> list[str]:
    """Up to where another clause begins: "allergic to nuts, found out the hard way"."""
    parts = listed(whole)
    verbs = [at for at, part in enumerate(parts) if at and part.split()[0] in _DID]
    return parts[: verbs[0]] if verbs else parts


@dataclass(frozen=True, slots=True)
class _Filled:
    """What a rule's placeholders stand for."""

    object: str
    said: str
    thing: str
    org: str = ""


def _filled(rule: Rule, said: str, match: re.Match[str]) -> _Filled | None:
    groups = match.groupdict()
    said = small_name(said) or said if rule.predicate == "name" else said
    obj, shown = bare(said), said
    if rule.object == "{place}":
        said = _LATELY.sub("", said)
        place = _PLACE.match(said)
        said = _NO_PLACE.split(said)[0]
        shown = place[0] if place else said
        obj = re.sub(r"\A(?:the|a|an) (?=[a-z])", "", shown)
        if len(obj.split()) > 6:
            return None
    elif rule.object == "{role}":
        role = role_in(bare(said))
        if role is None:
            return None
        obj, shown = role, article(role)
    elif rule.object == "{org}":
        obj = bare(phrase_of(groups.get("org") or "") or "")
        if not obj:
            return None
    elif "{" not in rule.object:
        obj = rule.object
    org = obj if rule.object == "{org}" else groups.get("org") or ""
    return _Filled(obj, shown, obj if rule.kind else "", org)


def _candidate(rule: Rule, filled: _Filled, claim: Claim, when: When) -> Candidate:
    verb, person = claim.verb, claim.person
    says, obj, predicate = _said(rule, filled, claim)
    negated = (verb.negated and not rule.flips) or rule.mode is Mode.ENDED
    over = rule.mode is Mode.STATE and verb.tense in PAST_TENSES
    thing = Thing(filled.thing, rule.kind) if filled.thing and filled.thing[:1].isupper() else None
    candidate = Candidate(
        type=rule.type,
        subject=person.thing,
        predicate=predicate,
        object=third(obj),
        text=_text(rule, third(says), claim),
        words=(claim.words,),
        thing=thing,
        aspect=rule.aspect.replace("{o}", filled.object.lower()),
        stance=_stance(rule, negated=negated),
        negated=negated,
        corrects=claim.corrects or (verb.negated and verb.tense in PAST_TENSES),
        valid_from=_since(rule, when, over=over),
        valid_to=_until(when, claim, over=over),
        confidence=rule.confidence,
    )
    if rule.predicate in ("likes", "dislikes"):
        return _of_product(_opposite(candidate) if negated else candidate)
    return candidate


def _said(rule: Rule, filled: _Filled, claim: Claim) -> tuple[str, str, str]:
    """The statement in the base form, its object, its predicate."""
    groups = {"o": filled.said, "org": filled.org, "verb": claim.verb.lemma}
    says = rule.says.format(**groups)
    match = rule.tail.match(claim.verb.tail)
    role = match.groupdict().get("role") if match else None
    role = role or (match.groupdict().get("role2") if match else None)
    if rule.predicate == "works_at" and role and (known := _any_role(role)):
        says = f"{says} as {article(known)}"
    if rule.predicate == "works_as" and rule.object == "{role}":
        return _role_at(says, filled, claim)
    return says, filled.object, rule.predicate


def _any_role(words: str) -> str:
    """Read the words after "as" as a role, even if it is not a known trade."""
    return role_in(bare(words)) or bare(phrase_of(words) or "")


def _role_at(says: str, filled: _Filled, claim: Claim) -> tuple[str, str, str]:
    """ "A nurse at St Brendan's" names the employer too."""
    tail = read_when(claim.verb.tail, claim.said_at)[0]
    after = tail[tail.find(filled.object) + len(filled.object) :]
    place = re.match(r"\s*,?\s*(?:at (?P<org>.+)|(?:for|with) (?P<name>(?:the )?[A-Z].+))", after)
    org = phrase_of(place["org"] or place["name"]) if place else None
    if org is None or org.lower().startswith(
        ("a living", "least", "night", "heart", "the moment", "home")
    ):
        return says, filled.object, "works_as"
    return f"work at {org} as {article(filled.object)}", bare(org), "works_at"


def _stance(rule: Rule, *, negated: bool) -> str:
    if not rule.stance or not negated:
        return rule.stance
    return "negative" if rule.stance == "positive" else "positive"


def _opposite(candidate: Candidate) -> Candidate:
    """ "I don't like onions" is a dislike; "I don't mind" and "I don't hate" say little."""
    if candidate.predicate == "likes":
        return replace(candidate, predicate="dislikes", negated=False)
    return candidate


def _of_product(candidate: Candidate) -> Candidate:
    """Whoever loves TypeScript has an opinion on it, which others of theirs are beside."""
    of, _, facet = candidate.object.partition(" ")
    if candidate.subject.name != USER or " " in facet or not is_product(of):
        return candidate
    if not facet.islower():
        of, facet = candidate.object, ""
    return replace(
        candidate,
        type="opinion",
        subject=Thing(of.removesuffix("'s"), "item"),
        predicate="opinion",
        object=candidate.text.removeprefix(f"{USER} "),
        aspect=facet,
    )


def _text(rule: Rule, says: str, claim: Claim) -> str:
    verb = claim.verb
    tense = verb.tense
    # "I can't stand it any more" begins a dislike.
    ended = verb.ended and not rule.flips
    negated = verb.negated and not rule.flips
    if rule.mode is Mode.ENDED:
        tense, ended, negated = Tense.PRESENT, True, True
    elif rule.mode is Mode.EVENT:
        tense = Tense.PAST
    elif rule.mode is Mode.BEGAN or tense in (Tense.PERFECT, Tense.PROGRESSIVE, Tense.CAN):
        tense = Tense.PRESENT
    if rule.predicate == "name":
        return f"{claim.person.label.rstrip(',')}'s name is {says.split(' ', 2)[-1]}"
    if rule.predicate == "works_as" and rule.says.startswith("be "):
        tense = Tense.PRESENT if tense is not Tense.PAST else tense
    return sentence(claim.person.label, says, tense=tense, negated=negated, ended=ended)


def _since(rule: Rule, when: When, *, over: bool) -> datetime | None:
    if over:
        return when.since
    return when.since or when.at


def _until(when: When, claim: Claim, *, over: bool) -> datetime | None:
    if over:
        return min(when.until or claim.said_at, claim.said_at)
    return when.until
