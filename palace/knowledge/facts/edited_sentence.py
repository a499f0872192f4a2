"""Update the statement of a fact whose sentence was edited."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from language.english.judging.wording import same
from language.facts import UNRESOLVED, USER, Candidate, category_of, is_single
from language.storable import LABEL_LENGTH
from palace.knowledge.facts.row_conversion import entity_for, find_entity
from palace.models import PREDICATE_LENGTH, Entity, Fact, Palace

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


def apply(
    palace: Palace, new: Fact, old: Fact, details: Details, candidates: Sequence[Candidate]
) -> bool:
    """Make `new` say its text, of its subject, with the given values; whether it could be read."""
    before = copy.copy(old)
    if details.subject:
        before.subject = new.subject = details.subject
        before.text = details.text or old.text
    is_read = new.text == before.text or follow(palace, new, before, candidates)
    if details.keeps_end and new.valid_to is None:
        new.valid_to = old.valid_to
    for name, value in details.values.items():
        setattr(new, name, value)
    return is_read


def content_of(fact: Fact) -> tuple[object, ...]:
    """All that an edit can change."""
    return fact.text, fact.metadata, *(getattr(fact, name) for name in STATEMENT)


def follow(palace: Palace, new: Fact, old: Fact, candidates: Sequence[Candidate]) -> bool:
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
    if found is None:
        new.object, new.object_entity, new.stance = "", None, ""
        return False
    _state(palace, new, found)
    return True


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
    if candidate.predicate == UNRESOLVED:
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
    new.subject = entity_for(palace, found.subject)
    new.predicate = found.predicate[:PREDICATE_LENGTH]
    new.single = is_single(new.predicate)
    new.object = found.object
    new.object_entity = entity_for(palace, thing) if thing else None
    new.aspect = found.aspect[:LABEL_LENGTH]
    new.stance = found.stance
    new.valid_from = found.valid_from or new.valid_from
    new.valid_to = found.valid_to
