"""Judging candidates beside known facts: by the owner's model if there is one, else by rules."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from language.english.judging.object_kinds import checked
from language.english.judging.rules import judge_by_rules
from language.english.judging.unresolved import has_pronoun_subject, resolve_pronoun
from language.facts import UNRESOLVED, Candidate, Judgement, Known, KnownFact, Verdict
from language.slugs import slug_of
from llm.errors import LLMError
from llm.providers import Endpoint
from palace.knowledge.facts.filters import condition_of
from palace.knowledge.facts.known_rows import Decision, KnownRows, known_fact_of
from palace.knowledge.facts.model_judge import judge_with_model
from palace.knowledge.facts.scope import DEFAULT_OPTIONS, ExtractionOptions, Scope
from palace.models import EmbeddingSpace, Entity, Fact, Palace
from palace.models.facts import FactQuerySet
from palace.storage.indexing.fact_vectors import Vector, nearest

# How many of the closest by meaning a candidate is judged beside, and how many about its subject.
CLOSEST = 5
OF_SUBJECT = 200

_TOOLS = frozenset({Entity.Kind.ITEM, Entity.Kind.PROJECT})


class Judge:
    """Judges candidates of one palace beside its active facts of the same scope.

    A model is asked once for all of a window, before the transaction. Inside the transaction the
    facts are looked up again: if they differ from those that the model saw, the rules judge.

    Attributes:
        notes: What was degraded, in sentences.
    """

    def __init__(
        self,
        palace: Palace,
        space: EmbeddingSpace,
        scope: Scope,
        endpoint: Endpoint | None,
        options: ExtractionOptions = DEFAULT_OPTIONS,
    ) -> None:
        self.notes: list[str] = []
        self.palace, self.space = palace, space
        self.scope, self._endpoint, self.options = scope, endpoint, options
        self._ahead: dict[Candidate, tuple[frozenset[int], Judgement]] = {}

    def look_ahead(self, candidates: Sequence[Candidate], vectors: Sequence[Vector | None]) -> None:
        """Ask the model about all of them; call it outside of a transaction."""
        if self._endpoint is None:
            return
        # The rules find the fact that a correction or a pronoun is about.
        asked = [
            (candidate, vector)
            for candidate, vector in zip(candidates, vectors, strict=True)
            if candidate.predicate != UNRESOLVED and not has_pronoun_subject(candidate)
        ]
        candidates = [candidate for candidate, _ in asked]
        known = [self._known_rows(candidate, vector).known for candidate, vector in asked]
        if not any(known):
            return
        try:
            judgements = judge_with_model(
                candidates,
                known,
                endpoint=self._endpoint,
                owner_id=self.palace.owner_id,
                prompt=self.options.judging_prompt,
            )
        except LLMError as error:
            self.notes.append(f"Facts were judged without the language model. {error}")
            return
        for candidate, facts, judgement in zip(candidates, known, judgements, strict=True):
            if judgement is not None:
                self._ahead[candidate] = _keys(facts), judgement

    def judge(self, candidate: Candidate, vector: Vector | None) -> Decision:
        """Judge a candidate; call it in the transaction that writes the decision."""
        if has_pronoun_subject(candidate):
            resolved = resolve_pronoun(candidate, self._latest())
            if resolved is None:
                why = "it is not known who that is"
                return Decision(Judgement(Verdict.NONE, candidate, why=why))
            candidate = resolved
        rows = self._known_rows(candidate, vector)
        known = rows.known
        judgement = self._decided(candidate, known) or judge_by_rules(candidate, known)
        return rows.decision(checked(judgement, known, self._is_tool))

    def ahead(self, candidate: Candidate) -> Judgement | None:
        """The model's judgement, if it was asked."""
        return self._ahead.get(candidate, (None, None))[1]

    def _decided(self, candidate: Candidate, known: Sequence[Known]) -> Judgement | None:
        """The model's judgement, unless the known facts have changed since."""
        seen, judgement = self._ahead.get(candidate, (frozenset(), None))
        return judgement if seen == _keys(known) else None

    def _latest(self) -> Sequence[KnownFact]:
        """Active facts, latest first."""
        latest = self._facts().order_by("-recorded_at", "-pk")[:OF_SUBJECT]
        return [known_fact_of(fact) for fact in _said_last_first(latest)]

    def _is_tool(self, name: str) -> bool:
        """Whether the palace has entities of that name, all of them things or projects."""
        named = Entity.objects.filter(
            palace=self.palace, kind__in=Entity.Kind.values, slug=slug_of(name)
        )
        kinds = set(named.values_list("kind", flat=True))
        return bool(kinds) and kinds <= _TOOLS

    def _known_rows(self, candidate: Candidate, vector: Vector | None) -> KnownRows:
        """Active facts about the same subject, and the closest by meaning; closest first."""
        facts = self._facts()
        found: dict[int, tuple[Fact, float]] = {}
        if vector is not None:
            for fact, similarity in nearest(self.palace, self.space, vector, facts, limit=CLOSEST):
                found[fact.pk] = fact, similarity
        slug = slug_of(candidate.subject.name)
        of_subject = facts.filter(subject__slug=slug).order_by("-recorded_at", "-pk")
        for fact in _said_last_first(of_subject[:OF_SUBJECT]):
            found.setdefault(fact.pk, (fact, 0.0))
        return KnownRows(sorted(found.values(), key=lambda row: -row[1]))

    def _facts(self) -> FactQuerySet:
        facts = Fact.objects.within(self.palace).active()
        if self.options.filters is not None:
            facts = facts.filter(condition_of(self.options.filters))
        return facts.filter(agent=self.scope.agent, run=self.scope.run).select_related(
            "subject", "object_entity", "opened_by__drawer"
        )


def _said_last_first(facts: Iterable[Fact]) -> list[Fact]:
    return sorted(facts, key=lambda fact: (fact.said_order, fact.pk or 0), reverse=True)


def _keys(known: Sequence[Known]) -> frozenset[int]:
    return frozenset(one.fact.key for one in known)
