"""Opening: the latest drawers, for a conversation's first message that names no subject."""

from __future__ import annotations

import numpy as np

from language.english.questions import is_plain, subject_of
from language.storable import storable_id
from palace.models import Drawer, Palace
from palace.recall.deduplication import ConversationState
from palace.recall.drawer_loader import load_drawers
from palace.recall.query import Query
from palace.recall.request import Hit, RecallRequest, RequestContext, scope_of

NOTHING_FOUND = "Nothing matched, so the latest messages are included."


def is_opening(conversation: ConversationState | None, question: Query, *, found_any: bool) -> bool:
    """Whether this is a conversation's first message without a subject ("hi") or without any hit
    or fact, so that the latest drawers are used instead. A named subject without a hit gets none.
    """
    if conversation is None or conversation.turn != 0:
        return False
    return is_plain(question) or not (found_any or subject_of(question))


def latest_hits(
    palace: Palace, request: RecallRequest, context: RequestContext, limit: int
) -> tuple[Hit, ...]:
    """The user's latest drawers that the request permits, newest first, with score 0."""
    said = Drawer.objects.within(palace).kept().filter(role="user")
    said = said.for_agent(storable_id(request.agent))
    if request.as_of is not None:
        said = said.filter(said_at__lte=request.as_of)
    if request.narrowing:
        said = said.filter(request.narrowing.condition(palace))
    if request.only_ids is not None:
        said = said.filter(pk__in=request.only_ids)
    newest = said.exclude(pk__in=[*request.exclude_ids, *request.repeats]).order_by(
        "-said_at", "-pk"
    )[:limit]
    keys = np.array(newest.values_list("pk", flat=True), dtype=np.int64)
    scope = scope_of(request, context)
    found, _ = load_drawers(palace, context.space, keys, np.zeros_like(keys), scope)
    return tuple(
        Hit(one.drawer, one.drawer.pointer, 0.0, {}, (0, len(one.drawer.text)), ended=one.ended)
        for one in (found[key] for key in keys.tolist() if key in found)
    )
