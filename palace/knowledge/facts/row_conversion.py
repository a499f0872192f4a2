"""Convert between rows and the plain values of `language`: things, known facts and candidates.

Where the sentence of a fact was edited, its row follows: it gets what a reader found in the text.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any, cast

from language.english.judging import same
from language.english.judging.object_kinds import doubt_of
from language.facts import (
    UNRESOLVED,
    USER,
    Candidate,
    Change,
    FactType,
    Judgement,
    Known,
    KnownFact,
    Thing,
    Verdict,
    Words,
    category_of,
    is_single,
)
from language.slugs import slug_of
from language.storable import LABEL_LENGTH, storable_label
from palace.knowledge.facts.fact_extraction import Scope
from palace.knowledge.facts.pet_entities import is_of_people, recognise_pet
from palace.models import PREDICATE_LENGTH, Drawer, Entity, Fact, Palace, Statement

_TIMES = ("valid_from", "valid_to")
# The columns that say what the sentence says.
STATEMENT = (
    "type",
    "subject_id",
    "predicate",
    "object",
    "object_entity_id",
    "aspect",
    "stance",
    "category",
    "single",
    "valid_from",
    "valid_to",
)
_SIGNS = re.compile(r"[\W_]+")
# A name of one to three words.
_NAME = r"[\w'&-]+(?: [\w'&-]+){0,2}"


def find_entity(palace: Palace, name: str, *, prefer: str = "") -> Entity | None:
    """The palace's entity with that name, or else with that alias.

    Args:
        prefer: A kind; of several entities the one of this kind, else the oldest.
    """
    name = storable_label(name)
    # All kinds, as the index begins with the kind.
    kinds = Entity.Kind.values
    named = list(
        Entity.objects.filter(palace=palace, kind__in=kinds, slug=slug_of(name)).order_by("pk")
    )
    named = named or list(Entity.objects.filter(palace=palace, aliases__contains=[name])[:1])
    same_kind = [entity for entity in named if entity.kind == prefer]
    return next(iter(same_kind or named), None)


def entity_for(palace: Palace, thing: Thing, predicate: str = "") -> Entity:
    """Find or create the entity of that name, of that kind if there are several.

    The caller locks the palace, so that concurrent writers create it once.

    Args:
        predicate: What is said of it: who has a job is not the pet of that name.
    """
    found = find_entity(palace, thing.name, prefer=thing.kind)
    if found is not None and thing.kind == Entity.Kind.PET:
        found = recognise_pet(palace, found)
    elif found is not None and found.kind == Entity.Kind.PET and is_of_people(predicate):
        found = None if thing.kind == Entity.Kind.PERSON else found
    if found is not None:
        return found
    name = storable_label(thing.name)
    return Entity.objects.create(
        palace=palace, kind=thing.kind, slug=slug_of(name), name=name[:LABEL_LENGTH]
    )


@dataclass(frozen=True, slots=True)
class Decision:
    """A judgement, with the row of the fact that it names."""

    judgement: Judgement
    row: Fact | None = None


def known_fact_of(row: Fact) -> KnownFact:
    """A row as a plain fact; fetch it with its entities, statement and drawer."""
    statement, entity = row.opened_by, row.object_entity
    said_in = (statement.drawer.source, statement.drawer.conversation) if statement else None
    return KnownFact(
        key=row.pk,
        type=cast(FactType, row.type),
        subject=_thing(row.subject),
        predicate=row.predicate,
        object=row.object,
        text=row.text,
        said_order=row.said_order,
        said_in=said_in or row.recorded_at,
        thing=_thing(entity) if entity else None,
        aspect=row.aspect,
        stance=row.stance,
        category=row.category,
        confidence=row.confidence,
        tags=tuple(row.tags),
        single=row.single,
        valid_from=row.valid_from,
    )


def _thing(entity: Entity) -> Thing:
    return Thing(entity.name, entity.kind)


class KnownRows:
    """The known facts that a candidate is judged against.

    Attributes:
        known: The rows as plain facts, in the order given.
    """

    def __init__(
        self,
        rows: Iterable[tuple[Fact, float]],
        known_fact: Callable[[Fact], KnownFact] = known_fact_of,
    ) -> None:
        """
        Args:
            rows: Each with its similarity to the candidate.
            known_fact: Gives the plain fact of a row.
        """
        self._rows: dict[int, Fact] = {}
        self.known: list[Known] = []
        for row, similarity in rows:
            self._rows[row.pk] = row
            self.known.append(Known(known_fact(row), similarity))

    def decision(self, judgement: Judgement) -> Decision:
        """Add the row that the judgement is about."""
        return Decision(judgement, self._rows[judgement.fact.key] if judgement.fact else None)


def record(
    palace: Palace,
    drawers: Sequence[Drawer],
    judged: Sequence[tuple[Candidate, Judgement | None]],
    scope: Scope,
) -> list[Statement]:
    """Store candidates, each with the model's judgement; call it in the reading's transaction.

    Args:
        drawers: Those of the window, in the order to which the candidates' spans refer.
    """
    counts: dict[int, int] = {}
    rows = []
    for candidate, judgement in judged:
        drawer = drawers[candidate.words[0].turn]
        ordinal = counts.get(drawer.pk, 0)
        counts[drawer.pk] = ordinal + 1
        rows.append(
            Statement(
                palace=palace,
                drawer=drawer,
                ordinal=ordinal,
                by=scope.by,
                agent=scope.agent,
                run=scope.run,
                metadata=dict(scope.metadata),
                content=_written(candidate, drawers),
                judged=_decision(judgement) if judgement else None,
            )
        )
    # Messages read twice, after a process has died, are stored once.
    stored = Statement.objects.filter(palace=palace, drawer__in=list(counts)).select_related(
        "drawer"
    )
    there = {(row.drawer_id, row.ordinal): row for row in stored}
    Statement.objects.bulk_create(
        [row for row in rows if (row.drawer_id, row.ordinal) not in there]
    )
    return [there.get((row.drawer_id, row.ordinal), row) for row in rows]


def candidate_of(statement: Statement) -> Candidate:
    """The candidate; its spans refer to messages in the order of `messages_of`."""
    content = dict(statement.content)
    names = messages_of(statement)
    words = tuple(Words(names.index(name), *span) for name, *span in content.pop("words"))
    subject, thing = content.pop("subject"), content.pop("thing")
    content |= {name: _time(content[name]) for name in _TIMES}
    content |= {"words": words, "tags": tuple(content["tags"]), "subject": Thing(**subject)}
    return Candidate(**content, thing=Thing(**thing) if thing else None)


def messages_of(statement: Statement) -> list[str]:
    """Ids of the messages that support it, all of its conversation."""
    return list(dict.fromkeys(name for name, *_ in statement.content["words"]))


def decided(statement: Statement, candidate: Candidate, known: Sequence[Known]) -> Judgement | None:
    """The model's judgement, if the fact it named is known; None: the rules judge."""
    given: Mapping[str, Any] | None = statement.judged
    if given is None:
        return None
    named = given["fact"]
    fact = next((one.fact for one in known if one.fact.text == named), None)
    if named is not None and fact is None:
        return None
    verdict, change = Verdict(given["verdict"]), Change(given["change"])
    return Judgement(verdict, candidate, fact, change, given["text"], given["why"])


def _written(candidate: Candidate, drawers: Sequence[Drawer]) -> dict[str, Any]:
    words = [(drawers[span.turn].external_id, span.start, span.end) for span in candidate.words]
    times = {name: getattr(candidate, name) for name in _TIMES}
    iso = {name: moment.isoformat() if moment else None for name, moment in times.items()}
    return asdict(replace(candidate, words=())) | iso | {"words": words}


def _decision(judgement: Judgement) -> dict[str, Any]:
    return {
        "verdict": judgement.verdict,
        "change": judgement.change,
        "text": judgement.text,
        "why": judgement.why,
        "fact": judgement.fact.text if judgement.fact else None,
    }


def _time(written: str | None) -> datetime | None:
    return datetime.fromisoformat(written) if written else None


@dataclass(frozen=True, slots=True)
class Details:
    """What an edit changes in addition to the sentence.

    Attributes:
        subject: Whom it is about from now on; None: as before.
        text: With another subject, the sentence before the edit with the names exchanged.
        values: Columns to set after the sentence was read, such as `valid_from`.
        keeps_end: Whether `valid_to` stays if the new sentence names no end.
    """

    subject: Entity | None = None
    text: str = ""
    values: Mapping[str, object] = field(default_factory=dict)
    keeps_end: bool = False


def apply_edit(
    palace: Palace, new: Fact, old: Fact, details: Details, candidates: Sequence[Candidate]
) -> bool:
    """Make `new` say its text, of its subject, with the given values; whether it could be read."""
    before = copy.copy(old)
    if details.subject:
        before.subject = new.subject = details.subject
        before.text = details.text or old.text
    is_read = new.text == before.text or follow_text(palace, new, before, candidates)
    if details.keeps_end and new.valid_to is None:
        new.valid_to = old.valid_to
    for name, value in details.values.items():
        setattr(new, name, value)
    return is_read


def content_of(fact: Fact) -> tuple[object, ...]:
    """All that an edit can change."""
    return fact.text, fact.metadata, *(getattr(fact, name) for name in STATEMENT)


def follow_text(palace: Palace, new: Fact, old: Fact, candidates: Sequence[Candidate]) -> bool:
    """Update the statement of `new`, a copy of `old` with another text, from its text.

    A text of an earlier version restores that version's statement. A text that differs only in
    punctuation and case changes nothing. The caller locks the palace.

    Args:
        candidates: The statements that a reader found in the text.

    Returns:
        Whether the text could be read as one statement about the same subject. If not, subject
        and predicate stay, and what the old text said beyond that is removed.
    """
    if _letters(new.text) == _letters(old.text):
        return True
    versions = Fact.objects.within(palace).filter(memory=old.memory, text=new.text)
    earlier = versions.order_by("-recorded_at", "-pk").first()
    if earlier is not None:
        for name in STATEMENT:
            setattr(new, name, getattr(earlier, name))
        return True
    found = _about_same(palace, old, candidates)
    if found is not None:
        _state(palace, new, found)
        return True
    if exchanged := _exchanged_object(old, new.text, candidates):
        thing = old.object_entity
        new.object = exchanged
        new.object_entity = entity_for(palace, Thing(exchanged, thing.kind)) if thing else None
        return True
    new.object, new.object_entity, new.stance = "", None, ""
    return False


def _exchanged_object(old: Fact, text: str, candidates: Sequence[Candidate]) -> str:
    """What an unread text has in place of the old object, or the name it gives a relative."""
    if candidates:
        named = [each for each in candidates if each.predicate == "name"]
        owner, _, role = named[0].subject.name.rpartition("'s ") if named else ("", "", "")
        is_same = bool(role) and owner == old.subject.name and f" {role} " in f"{old.text} "
        return named[0].object if is_same and len(candidates) == 1 else ""
    if not old.object or old.text.count(old.object) != 1:
        return ""
    before, after = map(re.escape, old.text.split(old.object))
    match = re.fullmatch(rf"{before}({_NAME}){after}\.?", text)
    return match[1] if match else ""


def says_same(one: Fact, other: Fact) -> bool:
    """Whether two versions of a memory make the same statement, so that words support both."""
    if _letters(one.text) == _letters(other.text):
        return True
    return (
        bool(one.object)
        and same(one.object, other.object)
        and all(
            getattr(one, name) == getattr(other, name)
            for name in ("type", "subject_id", "predicate", "object_entity_id", "aspect", "stance")
        )
        and (one.valid_to is None) == (other.valid_to is None)
    )


def _letters(text: str) -> str:
    return _SIGNS.sub(" ", text).strip().casefold()


def _about_same(palace: Palace, old: Fact, candidates: Sequence[Candidate]) -> Candidate | None:
    """The one statement about the subject of `old`, or the one that has its predicate too."""
    about = [each for each in candidates if _is_about_same(palace, old, each)]
    if len(about) > 1:
        about = [each for each in about if each.predicate == old.predicate]
    return about[0] if len(about) == 1 else None


def _is_about_same(palace: Palace, old: Fact, candidate: Candidate) -> bool:
    if candidate.predicate == UNRESOLVED or doubt_of(candidate, (), lambda _: False):
        return False
    # The subject of an opinion is its topic; the person whose opinion it is must stay the same.
    was_opinion, is_opinion = old.type == Fact.Type.OPINION, candidate.type == "opinion"
    if was_opinion and is_opinion:
        return True
    user = find_entity(palace, USER, prefer="person")
    if is_opinion and candidate.text.startswith(USER):
        return user is not None and user.pk == old.subject_id
    entity = find_entity(palace, candidate.subject.name, prefer=candidate.subject.kind)
    if was_opinion and old.text.startswith(USER):
        return candidate.subject.name == USER if entity is None else entity == user
    return entity is not None and entity.pk == old.subject_id


def _state(palace: Palace, new: Fact, found: Candidate) -> None:
    if found.predicate != new.predicate:
        new.category = (found.category or category_of(found.predicate))[:LABEL_LENGTH]
    # A negated statement has no edge.
    thing = None if found.negated else found.thing
    new.type = found.type
    new.subject = entity_for(palace, found.subject, found.predicate)
    new.predicate = found.predicate[:PREDICATE_LENGTH]
    new.single = is_single(new.predicate)
    new.object = found.object
    new.object_entity = entity_for(palace, thing) if thing else None
    new.aspect = found.aspect[:LABEL_LENGTH]
    new.stance = found.stance
    new.confidence = max(new.confidence, found.confidence)
    new.valid_from = found.valid_from or new.valid_from
    new.valid_to = found.valid_to
    if new.valid_from and new.valid_to and new.valid_to < new.valid_from:
        # When the old statement began says nothing about one that had ended by then.
        new.valid_from = None
