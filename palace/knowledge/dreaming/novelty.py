"""Leaving out what a model finds anew though it is known, in other words, or was decided on."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from language.english.judging.word_overlap import same
from palace.knowledge.dreaming.findings import ADDING, Finding
from palace.models import EmbeddingSpace, Fact, Palace, Proposal
from palace.storage.indexing.fact_vectors import Vector, embed_texts, nearest

# Cosines from which two preferences, or two anti-patterns, are one.
SAME_AS_KNOWN = 0.88
CLOSEST = 3
# Proposals of a kind that are looked over, the last ones.
LOOKED_OVER = 200


@dataclass(frozen=True, slots=True)
class _Said:
    """A text of a kind, and its vector; None where it has none."""

    kind: str
    text: str
    vector: Vector | None

    def is_like(self, other: _Said) -> bool:
        return self.kind == other.kind and (
            same(self.text, other.text) or _cosine(self.vector, other.vector) >= SAME_AS_KNOWN
        )


def only_new(palace: Palace, space: EmbeddingSpace, findings: Sequence[Finding]) -> list[Finding]:
    """Those that add nothing known to what is held, and nothing that was proposed before."""
    adding = [one for one in findings if one.kind in ADDING and one.after is not None]
    if not adding:
        return list(findings)
    told = [(one.kind.value, one.after.text) for one in adding if one.after]
    earlier = _proposed(palace, {kind for kind, _ in told})
    vectors = embed_texts(palace, space, [text for _, text in (*told, *earlier)])
    said = [
        _Said(kind, text, vector)
        for (kind, text), vector in zip((*told, *earlier), vectors, strict=True)
    ]
    known, before = set(), said[len(adding) :]
    for finding, one in zip(adding, said, strict=False):
        if any(one.is_like(other) for other in before) or _is_held(palace, space, finding, one):
            known.add(id(finding))
        else:
            # Likewise of two that one answer words differently.
            before.append(one)
    return [one for one in findings if id(one) not in known]


def _proposed(palace: Palace, kinds: Collection[str]) -> list[tuple[str, str]]:
    before = Proposal.objects.within(palace).filter(kind__in=kinds)
    before = before.exclude(status=Proposal.Status.STALE).order_by("-made_at", "-pk")
    rows = before.values_list("kind", "payload__after__text")[:LOOKED_OVER]
    return [(kind, text) for kind, text in rows if text]


def _is_held(palace: Palace, space: EmbeddingSpace, finding: Finding, one: _Said) -> bool:
    if one.vector is None or finding.after is None:
        return False
    root = finding.after.category.split("/")[0]
    held = Fact.objects.within(palace).active().filter(agent="", run="")
    alike = held.filter(type=Fact.Type.PREFERENCE) | held.filter(category__startswith=root)
    return any(
        cosine >= SAME_AS_KNOWN or same(fact.text, one.text)
        for fact, cosine in nearest(palace, space, one.vector, alike, limit=CLOSEST)
    )


def _cosine(one: Vector | None, other: Vector | None) -> float:
    return 0.0 if one is None or other is None else float(one @ other)
