"""Reading messages for facts by rules alone: what is left out costs less than what is wrong."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace

from language.analyzer import ENGLISH, language_of
from language.english import kinds_of
from language.english.facts import guards
from language.english.facts.amendments import (
    Setting,
    amendments_of,
    is_signal,
    may_amend,
    puts_right,
    said_wrongly,
)
from language.english.facts.attributes import attributes_of
from language.english.facts.claims import candidates_of
from language.english.facts.family import companions_of, households_of, introductions_of
from language.english.facts.idioms import said_in_passing
from language.english.facts.instructions import instructions_of
from language.english.facts.opinions import opinions_of
from language.english.facts.people import ABSENT, Company, Person
from language.english.facts.rules import PAST_TENSES, Claim, might_tell_when
from language.english.facts.sentences import Clause, Sentence, clauses_of, sentences_of, spelt_out
from language.english.facts.subjects import FRAGMENT, Subject, subject_of, takes_back
from language.english.facts.subordinate_clauses import (
    asides_of,
    is_parted,
    not_whom,
    parted,
    profile_of,
)
from language.english.facts.verbs import THIRD, Tense, Verb, read_verb, said_by
from language.english.judging.object_kinds import weighed
from language.facts import HEARSAY, OTHERS, SURE, Candidate, Thing, Words, is_single
from language.transcripts import Turn

_MACHINES = frozenset(
    {"assistant", "ai", "bot", "chatgpt", "claude", "gemini", "gpt", "system", "model", "copilot"}
)
# What may be said of somebody who was never introduced.
_OF_STRANGERS = frozenset({"works_at", "works_as", "lives_in", "married_to", "diet", "allergic_to"})
_MINE = re.compile(r"(?i)\b(?:I|me|my|we|us|our)\b")
_STATED = re.compile(
    r"(?i)\A(?:(?:so|hi|hello|hey|ok|well|and|but)\b,? )*(?:(?:i|we|my|our"
    r"|fav(?:ou?rite)?)\b[^,]{4,}"
    r"|(?:an? )?[\w'-]+(?: [\w'-]+)? here|[\w -]{3,30}? (?:has|have) grown on me[^,]*),"
)
# "Moving the opening to": what follows was read as a date, or not at all.
_CUT_OFF = re.compile(r"\b(?:to|of|for|with|from|by|the|an?|and|or)\Z")
# "We nearly bought a house".
_SHORT_OF_IT = frozenset({"nearly", "almost"})
# "I used to love techno, now I can't stand it".
_LIKES_IT = re.compile(
    r"\A(?P<i>(?:(?:and|but|now|so|then|today),? )*I (?:(?:[a-z]+ly|now|do|just|also|cannot|can"
    r"|could|not|used to|came to|still|no longer) )*(?:like|love|hate|enjoy|adore|dislike|stand"
    r"|bear)) (?:it|them)\b(?! (?:when|if|that|to|so|how|here|there)\b)"
)
# "I've a Pixel now", "I dropped it, got an iPhone": one that is bought may be one of two.
_INSTEAD = re.compile(
    r"(?i)\b(?:now(?! (?:and|to)\b)|instead|these days|nowadays|replac\w+ (?:it|mine))\b"
)
_LET_GO = re.compile(r"(?i)\bI (?:dropped|lost|broke|smashed|sold) (?:it|mine),? (?:and |so )*\Z")
_BESIDE = re.compile(
    r"(?i)\b(?:also|too|as well|second|another|work|company|spare|old|for (?!good\b|now\b)\w+"
    r"|at home|(?:at|in|on) (?:my|our|her|his|the)|right now|when|and an?"
    r"|(?<!\bam )(?<!['’]m )(?<!\bback )(?:at|in|on) an?)\b"
)
_END = re.compile(r"[.!?\n]")
# "Im Nora" names somebody, "im Oktober" does not.
_MAY_BE_GERMAN = re.compile(r"\b[Ii]m [A-ZÄÖÜ]")
# "I'm not drinking tonight" is of one evening.
_TODAY = re.compile(r"(?i)(?<!\bof )(?<!\bfrom )(?<!\bsince )\b(?:tonight|today)\b")
_CHANGES = frozenset("switch change move migrate convert upgrade".split())
# Not "I switched my router to Linux", nor "from Trello to Linear".
_CHANGED_TO = re.compile(
    r"(?i)\b(?:switch|chang|mov|migrat|convert|upgrad)\w* (?:(?:all|fully|completely|entirely|over"
    r"|back) )*(?:on)?to\b"
)
_TAG = re.compile(
    r"(?i)\s*(?:right|correct|yes|no|ok|okay|or|and|isn't|aren't|don't|am|do|did|have|haven't"
    r"|didn't)\b"
)


def read_facts(turns: Sequence[Turn]) -> list[Candidate]:
    """What people say of themselves and of those around them, in the order they say it.

    Needs no model and no database. Never raises, whatever the messages are.
    """
    reading = _Reading()
    for at, turn in enumerate(turns):
        reading.read(at, turn)
    return reading.candidates


class _Reading:
    """Goes through a conversation, knowing who speaks and whom they have told of."""

    def __init__(self) -> None:
        self.candidates: list[Candidate] = []
        self._company = Company()
        self._playing = False

    def read(self, at: int, turn: Turn) -> None:
        named = bool(turn.speaker) and turn.speaker.lower() not in _MACHINES
        if turn.role != "user" and not (named and turn.role == "assistant"):
            return
        if _MAY_BE_GERMAN.search(turn.text) and language_of(turn.text) != ENGLISH:
            return
        if self._playing:
            self._playing = not guards.ends_play(turn.text)
            return
        if not guards.speaks_of_itself(turn.text) and not may_amend(turn.text):
            self._playing = guards.begins_play(turn.text)
            return
        self._company.turn_to(turn.speaker)
        self._company.begin_message(at)
        message = _Message(at, turn, self._company)
        self.candidates += _once([*_of_the_speaker(message.read(), self._company.me)])
        self._playing = message.begins_play


def _stated_before(clause: Clause, sentence: Sentence) -> Clause | None:
    """What is stated before a comma: "I live near Krakow, winters are hard so which coat?"."""
    at = clause.start - sentence.start
    raw = sentence.text[at : at + clause.end - clause.start]
    stated = _STATED.match(raw)
    if stated is None or clause.elided or clause.relative or _TAG.match(raw, stated.end()):
        return None
    text = stated[0].rstrip(",")
    return replace(clause, text=spelt_out(text), end=clause.start + len(text))


def _is_of_today(verb: Verb, said: str) -> bool:
    return verb.negated and verb.tense is Tense.PROGRESSIVE and _TODAY.search(said) is not None


def _takes_a_place(one: Candidate, claim: Claim, said: str, before: str) -> bool:
    """Whether it takes the place of what there was: "I switched to Linux", "I'm on Linux now"."""
    if one.predicate not in ("uses", "owns") or one.negated or not kinds_of(one.object):
        return False
    done = claim.verb.lemma in _CHANGES and claim.verb.tense in (Tense.PAST, Tense.PERFECT)
    changed = done and _CHANGED_TO.search(said) is not None
    instead = changed or (_INSTEAD.search(said) or _LET_GO.search(before)) is not None
    # "I have a phone now" may be of the one that is known.
    return instead and one.object not in ("phone", "laptop") and _BESIDE.search(said) is None


def _of_the_speaker(candidates: Sequence[Candidate], me: Person) -> Iterator[Candidate]:
    """ "I'm Nora, a nurse": what is said of Nora there, but not of "my friend Nora", is said of who
    speaks."""
    own = {one.object for one in candidates if one.predicate == "name" and one.subject == me.thing}
    for one in candidates:
        name, said = one.subject.name, one.text.removeprefix(f"{one.subject.name} ")
        is_me = name in own and said != one.text
        yield replace(one, subject=me.thing, text=f"{me.label} {said}") if is_me else one


def _once(candidates: Sequence[Candidate]) -> Iterator[Candidate]:
    """The same said twice in a message is said once; what is cut off says nothing."""
    seen: set[tuple[str, str, str, str, bool]] = set()
    for one in candidates:
        named_so = one.predicate == "name" and one.object.lower() == one.subject.name.lower()
        if named_so or _CUT_OFF.search(one.object):
            continue
        key = (one.subject.name, one.predicate, one.object.lower(), one.aspect, one.negated)
        if key not in seen and one.object:
            seen.add(key)
            yield one


class _Message:
    """One message, sentence by sentence."""

    def __init__(self, at: int, turn: Turn, company: Company) -> None:
        self.begins_play = False
        self._at, self._turn, self._company = at, turn, company
        # "Homer Simpson lives in Springfield" is of nobody around, if the message is not either.
        mine = _MINE.search(turn.text) is not None
        self._of_strangers = _OF_STRANGERS if mine else _OF_STRANGERS - {"lives_in"}
        self._found: list[Candidate] = []
        self._lead = ""
        self._corrects = False
        self._not_them: Person | None = None
        self._announced, self._before = False, ""
        self._liked = self._clause_before = ""

    def read(self) -> list[Candidate]:
        before: list[Candidate] = []
        for sentence in sentences_of(self._turn.text):
            if guards.begins_report(sentence.text):
                break
            if guards.begins_made_up(sentence.text):
                self.begins_play = guards.begins_play(sentence.text)
                break
            if guards.is_not_meant(sentence.text):
                if len(sentence.text.split()) <= 4:
                    self._found = before
                continue
            before = list(self._found)
            if not (guards.asks_for_text(sentence.text) or guards.is_for_others(sentence.text)):
                self._found += self._said(sentence)
        return self._found

    def _said(self, sentence: Sentence) -> list[Candidate]:
        """What it says by itself, and what it amends."""
        self._company.opening = not self._turn.text[: sentence.start].strip()
        right = puts_right(sentence.text)
        self._not_them = self._denied(not_whom(spelt_out(sentence.text)))
        self._corrects = right or self._announced or takes_back(sentence.text)
        said = [*self._asides(sentence), *self._sentence(sentence)]
        meant = not (guards.is_reported(sentence.text) or guards.is_open(sentence.text))
        instructs = any(one.category == "instructions" for one in said)
        if meant and not (sentence.question or self._not_them or instructs):
            words = self._words(sentence.start, sentence.end)
            said += amendments_of(sentence.text, words, self._setting(sentence, said, right=right))
        self._announced = right and is_signal(sentence.text)
        self._before = said_wrongly(sentence.text)
        return said

    def _setting(self, sentence: Sentence, said: Sequence[Candidate], *, right: bool) -> Setting:
        def whom() -> Person:
            about = None if right else subject_of(spelt_out(sentence.text), self._company)
            return about.person if about else self._company.me

        return Setting(
            said_at=self._turn.said_at,
            me=self._company.me,
            whom=whom,
            announced=self._announced or self._turn.text[: sentence.start].endswith("*"),
            before=self._before,
            plain=not said,
            ended=any(one.negated for one in said),
        )

    def _asides(self, sentence: Sentence) -> Iterator[Candidate]:
        """What a sentence takes for granted, though it is about something else, or asks."""
        for clause in asides_of(sentence):
            if not guards.is_open(clause.text) and not guards.is_reported(clause.text):
                yield from self._clause(clause, None)
        if not sentence.question:
            first = not self._turn.text[: sentence.start].strip()
            for text in profile_of(spelt_out(sentence.text), first=first):
                yield from self._clause(Clause(text, sentence.start, sentence.end), None)
        if is_parted(sentence.text):
            yield parted(self._company.me, self._words(sentence.start, sentence.end))

    def _sentence(self, sentence: Sentence) -> Iterator[Candidate]:
        instructed = list(instructions_of(sentence, self._words, self._company))
        if instructed:
            yield from instructed
            return
        self._liked = self._clause_before = ""
        clauses = list(clauses_of(sentence))
        self._company.hear(sentence.text)
        asked = blocked = False
        subject: Subject | None = None
        for number, clause in enumerate(clauses):
            asks = not (clause.elided or clause.relative) and guards.asks(clause.text)
            asked |= asks
            last_of_question = (
                sentence.question and number == len(clauses) - 1 and (asks or not asked)
            )
            if not clause.elided and not clause.relative:
                subject, before = None, clauses[number - 1].text
                # "I said I was 34, but I'm 35".
                blocked &= guards.is_reported(before) and not before.startswith("I said")
            blocked |= guards.is_open(clause.text) or guards.is_reported(clause.text)
            if blocked or asks or guards.orders(clause.text):
                blocked |= asks
                yield from self._taken_for_granted(clause)
                continue
            said = _stated_before(clause, sentence) if last_of_question else clause
            if said is not None:
                subject = yield from self._clause(said, subject)

    def _taken_for_granted(self, clause: Clause) -> Iterator[Candidate]:
        """ "My partner Beth thinks so", "what can I get my sister Anna": there they are."""
        if not guards.supposes(clause.text):
            words = self._words(clause.start, clause.end)
            yield from introductions_of(guards.own_part(clause.text), words, self._company)

    def _clause(
        self, clause: Clause, before: Subject | None
    ) -> Generator[Candidate, None, Subject | None]:
        """Returns whom it was about, which the next clause may leave out."""
        clause = self._with_what_is_liked(clause)
        words = self._words(clause.start, clause.end)
        passing = [
            *said_in_passing(clause.text, words, self._turn.said_at, self._company),
            *attributes_of(clause.text, words, self._turn.said_at, self._company),
        ]
        subject = self._subject(clause, before)
        yield from introductions_of(clause.text, words, self._company)
        if passing:
            yield from (replace(one, corrects=one.corrects or self._corrects) for one in passing)
            return None
        if subject is None:
            if FRAGMENT.match(clause.text) and might_tell_when(clause.text):
                self._lead = clause.text
            yield from opinions_of(clause.text, words, self._company)
            return None
        claim, spoken_of_last = self._claim(subject, words), self._company.last
        if claim is not None:
            yield from self._claimed(claim, clause, stranger=subject.stranger)
        elif subject.stranger:
            yield from opinions_of(clause.text, words, self._company)
        person = subject.person
        # "My son has a friend who plays": the friend does.
        spoken_of = claim is not None or not subject.rest
        spoken_of &= self._company.last is spoken_of_last
        if spoken_of and person is not self._company.me and person.thing.name not in ABSENT:
            self._company.last = person
        return subject

    def _with_what_is_liked(self, clause: Clause) -> Clause:
        """ "Now I can't stand it", where the clause just before says what "it" is."""
        topic = self._company.topic
        about = topic if self._clause_before.endswith(f" about {topic}") else ""
        what, self._liked, self._clause_before = self._liked or about, "", clause.text
        said = _LIKES_IT.match(clause.text) if what else None
        if said is None:
            return clause
        return replace(clause, text=f"{said['i']} {what}{clause.text[said.end() :]}")

    def _claim(self, subject: Subject, words: Words) -> Claim | None:
        """None where no verb is said of the subject."""
        lead, self._lead = subject.lead or self._lead, ""
        verb = read_verb(subject.rest)
        if verb is None or (verb.adverbs & _SHORT_OF_IT and verb.tense in PAST_TENSES):
            return None
        corrects = subject.corrects or self._corrects
        return Claim(subject.person, verb, words, self._turn.said_at, lead, corrects)

    def _claimed(self, claim: Claim, clause: Clause, *, stranger: bool) -> Iterator[Candidate]:
        """What the clause says of its subject; of a stranger only what is plain."""
        opinions = list(opinions_of(clause.text, claim.words, self._company))
        yield from opinions
        if opinions:
            return
        said = self._turn.text[claim.words.start : claim.words.end]
        for stated in self._stated(claim):
            one = weighed(stated, claim.verb.lemma, said, self._turn.text)
            if one is None or _is_of_today(claim.verb, said):
                continue
            corrects = self._corrects or (one.corrects and is_single(one.predicate))
            plain = not stranger or (one.predicate in self._of_strangers and not one.negated)
            confidence = one.confidence if plain else min(one.confidence, HEARSAY)
            before, end = self._turn.text[: claim.words.start], claim.words.end
            sentence = said + _END.split(self._turn.text[end:], maxsplit=1)[0]
            if confidence >= SURE and _takes_a_place(one, claim, sentence, before):
                text = f"{claim.person.label} has {one.object} instead"
                yield replace(one, aspect=OTHERS, text=text, negated=True, thing=None)
            yield replace(one, corrects=corrects, confidence=confidence)
            liked = one.object if one.type == "preference" else one.subject.name
            if one.type in ("preference", "opinion") and clause.text.endswith(liked):
                self._liked = liked
            if (other := self._not_them) and claim.person != other and not one.negated:
                verb = replace(claim.verb, negated=True)
                yield from candidates_of(replace(claim, person=other, verb=verb, corrects=True))
            lives_there = one.predicate == "lives_in" and not one.negated and not one.valid_to
            if lives_there and claim.person is self._company.me:
                yield from companions_of(claim, clause.text, self._company)

    def _stated(self, claim: Claim) -> list[Candidate]:
        said = list(households_of(claim, self._company))
        if not said or (claim.verb.lemma == "be" and claim.verb.tail.startswith(("a ", "an "))):
            said += candidates_of(claim)
        inner = None if said else said_by(claim.verb)
        return self._stated(replace(claim, verb=inner)) if inner else said

    def _denied(self, whom: str) -> Person | None:
        if not whom or whom == "me":
            return self._company.me if whom else None
        for mention in self._company.mentions(f"{whom} "):
            return mention.person
        return self._company.named(whom) or Person(Thing(whom, "person"), whom)

    def _subject(self, clause: Clause, before: Subject | None) -> Subject | None:
        if clause.elided:
            return self._same_as(before, clause) if before else None
        if clause.relative:
            person = self._company.last
            return Subject(person, clause.text) if person else None
        return subject_of(clause.text, self._company)

    def _same_as(self, before: Subject, clause: Clause) -> Subject | None:
        """Whoever "I need a hero, lives in a mill" is about, it is not me."""
        if before.person is self._company.me and clause.text.split()[0] in THIRD:
            return None
        return replace(before, rest=clause.text, lead="")

    def _words(self, start: int, end: int) -> Words:
        return Words(self._at, start, end)
