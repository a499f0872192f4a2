"""The filters of the list of facts: from the address to a query."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date
from functools import cache
from typing import Literal, Self, cast

from django.db.models import Q
from django.http import QueryDict
from django.utils import timezone

from isolation.raw_sql import columns, fetch_rows, read_instance
from language.analyzer import ENGLISH, language_of
from language.english.grammatical_person import about_user
from language.errors import EmptyQuery, VectorStoreAway
from language.storable import normalize_query, storable_label
from palace.models import EmbeddingSpace, Entity, Fact, FactQuerySet, Palace, stored_name
from palace.queries.facts import UNSHOWN, about_entity, in_category
from palace.recall import MINILM, Query, read_query, trained_embedder
from palace.storage.indexing.fact_vectors import Vector, cosine_in_sql, cosines_of
from palace.storage.indexing.spaces import active_space
from palace.views.shared.query_params import BadDay, end_of, get_by_uuid, query_string, read_day

# The least cosine of a fact with what is searched, where the words are not in it, and how much
# less it may be than that of the best one.
MIN_COSINE, BELOW_BEST = 0.3, 0.25
State = Literal["held", "dropped", "all"]
Clock = Literal["true", "said", "known"]

STATES: dict[State, str] = {
    "held": "Active",
    "dropped": "Inactive",
    "all": "Both",
}
CLOCKS: dict[Clock, str] = {
    "true": "True on that day",
    "said": "Said by that day",
    "known": "Known on that day",
}


@dataclass(frozen=True, slots=True)
class FactFilter:
    """The filters in the page's address; without any, all active facts.

    Attributes:
        words: The fact's text has each of them.
        about: A part of a name of the subject or object.
        entity: The subject or object itself.
        category: A path, including categories below it.
        day: Facts as of the end of this day, by `clock`; `state` is ignored then.
        error: A sentence about an invalid day.
    """

    type: str = ""
    words: str = ""
    about: str = ""
    entity: Entity | None = None
    category: str = ""
    state: State = "held"
    day: date | None = None
    day_text: str = ""
    clock: Clock = "true"
    error: str = ""

    @classmethod
    def read(cls, palace: Palace, sent: QueryDict) -> Self:
        """From an address; unknown values are ignored, but a bad day is an error.

        Raises:
            Http404: the entity is not in this palace.
        """
        text = {name: storable_label(sent.get(name, "")) for name in _TEXTS}
        day, error = None, ""
        try:
            day = read_day(text["as_of"])
        except BadDay as bad:
            error = str(bad)
        return cls(
            type=text["type"] if text["type"] in Fact.Type else "",
            words=text["q"],
            about=text["about"],
            entity=entity_asked(palace, text["entity"]),
            category=text["category"].strip("/"),
            state=next((state for state in STATES if state == text["state"]), "held"),
            day=day,
            day_text=text["as_of"],
            clock=next((clock for clock in CLOCKS if clock == text["clock"]), "true"),
            error=error,
        )

    @property
    def is_empty(self) -> bool:
        return self == FactFilter(type=self.type)

    @property
    def is_folded(self) -> bool:
        """Whether only words and type are filtered."""
        return self == FactFilter(type=self.type, words=self.words)

    def query(self, **more: str) -> str:
        """The query string, with `more`; empty without filters."""
        asked = {
            "q": self.words,
            "type": self.type,
            "about": self.about,
            "entity": str(self.entity.uuid) if self.entity else "",
            "category": self.category,
            "state": "" if self.state == "held" else self.state,
            "as_of": self.day_text,
            "clock": "" if self.clock == "true" else self.clock,
        } | more
        return query_string(**asked)

    def of_type(self, name: str) -> FactFilter:
        return replace(self, type=name)

    def without_words(self) -> FactFilter:
        return replace(self, words="")

    def without_entity(self) -> FactFilter:
        return replace(self, entity=None)

    def facts(self, palace: Palace) -> FactQuerySet:
        """The facts that pass the filters, unordered."""
        facts = self._held(palace)
        for word in self.words.split():
            facts = facts.filter(text__icontains=word)
        if self.type:
            facts = facts.filter(type=self.type)
        facts = facts.filter(in_category(self.category))
        if self.entity:
            facts = facts.filter(about_entity(self.entity))
        if self.about:
            facts = facts.filter(about_named(self.about))
        return facts

    def _held(self, palace: Palace) -> FactQuerySet:
        facts = Fact.objects.within(palace)
        if self.day:
            moment = end_of(self.day)
            if self.clock == "said":
                return facts.said_by(moment)
            known = self.clock == "known"
            return facts.as_of(known_at=moment) if known else facts.as_of(true_at=moment)
        if self.state == "all":
            return facts
        return facts.active() if self.state == "held" else facts.exclude(retired_at=None)


def close_in_meaning(
    palace: Palace,
    words: str,
    among: FactQuerySet | None = None,
    *,
    at_most: int,
    embedded: Query | None = None,
) -> list[Fact]:
    """The closest of these facts by meaning, best first; none if the embedder or the vector
    store is away.

    Args:
        among: None: all active facts.
        embedded: A question with its vector and those beside it, so that none of the same words is
            embedded again.
    """
    space = (embedded and embedded.space) or active_space()
    vector = _vector_of(palace, space, asked_of_facts(words), embedded)
    if vector is None or len(vector) != space.dimensions:
        return []
    # Cosines of another embedder are on another scale.
    of_minilm = trained_embedder(space.provider, space.model) == MINILM
    least = MIN_COSINE if of_minilm else -1.0
    if among is None:
        found = _closest(palace, space, vector, at_most)
    else:
        try:
            cosines = cosines_of(palace, space, vector, among, limit=at_most)
        except VectorStoreAway:
            return []
        rows = Fact.objects.within(palace).select_related("subject").in_bulk(list(cosines))
        found = [(rows[key], cosine) for key, cosine in cosines.items() if key in rows]
    best = found[0][1] if found else 0.0
    return [fact for fact, cosine in found if cosine >= max(least, best - BELOW_BEST)]


def asked_of_facts(words: str) -> str:
    """The question as facts are compared with it: they name their owner, and "I" is far from "User"
    for the embedder.
    """
    return normalize_query(about_user(words) if language_of(words) == ENGLISH else words)


def _vector_of(
    palace: Palace, space: EmbeddingSpace, asked: str, embedded: Query | None
) -> Vector | None:
    """None for no words, and without an embedder."""
    if embedded and embedded.text == asked:
        return embedded.vector
    if embedded and asked in embedded.beside:
        return embedded.beside[asked]
    try:
        now = timezone.now()
        return read_query(palace, space, asked, now=now, as_of=None, by_meaning=True).vector
    except EmptyQuery:
        return None


def _closest(
    palace: Palace, space: EmbeddingSpace, vector: Vector, at_most: int
) -> list[tuple[Fact, float]]:
    """The closest active facts with their subjects and cosines, in one written statement."""
    active = Fact.objects.within(palace).active
    cosine, parameters, _ = cosine_in_sql(palace, space, vector, active)
    given = {"palace": palace.pk, "space": space.pk, "at_most": at_most, **parameters}
    found = []
    for closeness, *values in fetch_rows(_closest_active(cosine), given, prepared=True):
        rest = iter(values)
        fact = cast("Fact", read_instance(Fact, rest, UNSHOWN))
        fact.subject = cast("Entity", read_instance(Entity, rest))
        found.append((fact, closeness))
    return found


@cache
def _closest_active(cosine: str) -> str:
    """
    Args:
        cosine: With the question, of facts `f` and their vectors `v`.
    """
    return f"""
        SELECT best.cosine, {columns(Fact, "f", UNSHOWN)}, {columns(Entity, "e")}
        FROM (
            SELECT * FROM (
                SELECT f.id, {cosine} AS cosine FROM palace_fact f
                LEFT JOIN palace_factvector v ON v.palace_id = %(palace)s
                    AND v.space_id = %(space)s AND v.fact_id = f.id
                WHERE f.palace_id = %(palace)s AND f.retired_at IS NULL
            ) compared WHERE cosine IS NOT NULL ORDER BY cosine DESC, id LIMIT %(at_most)s::bigint
        ) best
        JOIN palace_fact f ON f.palace_id = %(palace)s AND f.id = best.id
        JOIN palace_entity e ON e.palace_id = %(palace)s AND e.id = f.subject_id
        ORDER BY best.cosine DESC, best.id
    """  # noqa: S608 - put together from constants.


_TEXTS = ("type", "q", "about", "entity", "category", "state", "as_of", "clock")


def entity_asked(palace: Palace, text: str) -> Entity | None:
    """
    Raises:
        Http404: the text is not the id of an entity in this palace.
    """
    return get_by_uuid(Entity.objects.filter(palace=palace), text) if text else None


def about_named(name: str) -> Q:
    """Facts whose subject or object has such a name."""
    stored = stored_name(name)
    return _named("subject", stored) | _named("object_entity", stored)


def _named(role: str, name: str) -> Q:
    return Q(**{f"{role}__name__icontains": name}) | Q(**{f"{role}__aliases__contains": [name]})
