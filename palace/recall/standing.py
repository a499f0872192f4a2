"""Standing: how one drawer fares for a question, beside the drawers that beat it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from palace.models import Drawer, Palace
from palace.models.opening import in_its_palace
from palace.recall.request import Hit, RecallRequest, read_request_context
from palace.recall.retrieval import search
from palace.recall.trace import TOO_FAR

# The filters of the recall do not permit the drawer, or it is not searchable yet.
NOT_CHOSEN_FROM = "left out by the filters"
NOT_SEARCHABLE = "not mined yet"


@dataclass(frozen=True, slots=True)
class Standing:
    """
    Attributes:
        place: Its rank by score, from 1; None for one that could not be a hit.
        why: Why it could not be a hit: `TOO_FAR`, `NOT_CHOSEN_FROM` or `NOT_SEARCHABLE`; else
            empty.
        score: Of this drawer; 0 where it was not scored, and `signals` is empty then.
        hits: What the recall finds, best first, by score.
    """

    place: int | None
    why: str
    score: float
    signals: Mapping[str, float]
    hits: tuple[Hit, ...]

    @property
    def is_hit(self) -> bool:
        return self.place is not None and self.place <= len(self.hits)


@in_its_palace
def standing_of(palace: Palace, request: RecallRequest, drawer: Drawer) -> Standing:
    """Score a drawer for the request, however far it is from the question.

    No model reranks: scores are compared, and those of one recall only compare with each other.

    Raises:
        EmptyQuery: the query is blank.
        UnknownRecipe: no recipe has that name.
    """
    request = replace(request, judge=drawer.pk, rerank=False, store_trace=False)
    found = search(palace, request, read_request_context(palace, request))
    scored = found.scored
    at = next(iter(np.flatnonzero(scored.candidates.drawers == drawer.pk).tolist()), None)
    if at is None:
        why = NOT_SEARCHABLE if drawer.mined_at is None else NOT_CHOSEN_FROM
        return Standing(None, why, 0.0, {}, found.hits)
    place = scored.order.index(at) + 1 if at in scored.order else None
    why = "" if place else TOO_FAR
    return Standing(place, why, float(scored.scores[at]), scored.signals(at), found.hits)
