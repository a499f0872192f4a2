"""The memory service's addresses: /turns, /recall, /search, /users and /sessions."""

from __future__ import annotations

import logging
from typing import Any, ClassVar

from django.conf import settings
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from kombu.exceptions import OperationalError as QueueAway
from rest_framework.request import Request
from rest_framework.response import Response

from palace.api.base import ApiView
from palace.api.memory_service import shapes, shown, turn_ids
from palace.api.palaces import palaces_of, subject_for
from palace.curation.leaving import delete_conversation, delete_palace
from palace.mining.at_once import mine_at_once
from palace.models import Drawer, Fact, Palace
from palace.recall.lines import PackableTurn
from palace.recall.recall import recall
from palace.sdk.arguments import metadata_of
from palace.storable import storable_id
from palace.tasks import have_learnt
from palace.transcripts import Transcript, Turn

logger = logging.getLogger(__name__)

# Of a session, so many of its latest messages may end the context.
LATEST = 3
TAG = ["memory service"]


class TurnsView(ApiView):
    @extend_schema(tags=TAG, request=shapes.Turns, responses={201: shapes.TurnKept})
    def post(self, request: Request) -> Response:
        """Keep messages to the byte, findable at once, and learn what they say.

        Answers within a minute. What a model has not done by then is made up for later; the
        answer says so.
        """
        asked = self.read(shapes.Turns)
        turn = turn_ids.new_turn(self.write)
        transcript = _transcript(turn, asked)
        palace = self.palace_made(asked.get("user_id"))
        done = mine_at_once(palace, transcript, seconds=settings.TURN_DEADLINE_S)
        _have_read_what_is_left(palace)
        return Response(shown.kept(turn, asked["session_id"], done), 201)


def _have_read_what_is_left(palace: Palace) -> None:
    try:
        have_learnt(palace.pk)
    except QueueAway as error:
        logger.warning("The queue is away, so the rest is left to the periodic tasks: %s", error)


def _transcript(turn: str, asked: dict[str, Any]) -> Transcript:
    said_at = asked.get("timestamp") or timezone.now()
    kept_with = metadata_of(asked.get("metadata")) or None
    turns = [
        Turn(
            turn_ids.message_id(turn, place),
            message["role"],
            message["content"],
            said_at,
            message.get("name", ""),
            kept_with,
        )
        for place, message in enumerate(asked["messages"])
    ]
    return Transcript(turn_ids.SOURCE, asked["session_id"], "", tuple(turns))


class RecallView(ApiView):
    only_reads: ClassVar[bool] = True

    @extend_schema(tags=TAG, request=shapes.RecallAsked, responses={200: shapes.Recalled})
    def post(self, request: Request) -> Response:
        """What is known and was said that answers the question, within a budget of tokens.

        Of whom nothing was told, the context is empty.
        """
        asked = self.read(shapes.RecallAsked)
        palace = self.palace(asked.get("user_id"))
        if palace is None:
            return Response(shown.NOTHING_RECALLED)
        recollection = recall(
            palace,
            asked["query"],
            top_k=asked.get("top_k"),
            as_of=asked.get("as_of"),
            recipe=asked.get("recipe"),
            budget_tokens=asked["max_tokens"],
            with_facts=True,
            session=_latest(palace, asked.get("session_id")),
            agent=asked.get("agent_id") or "",
        )
        return Response(shown.recalled(palace, recollection))


def _latest(palace: Palace, session: str | None) -> list[PackableTurn]:
    if not session:
        return []
    drawers = _of_session(palace, session).filter(trashed_at=None)
    return list(reversed(drawers.order_by("-position")[:LATEST]))


def _of_session(palace: Palace, session: str) -> Any:
    return Drawer.objects.within(palace).filter(
        source=turn_ids.SOURCE, conversation=storable_id(session)
    )


class SearchView(ApiView):
    only_reads: ClassVar[bool] = True

    @extend_schema(tags=TAG, request=shapes.SearchAsked, responses={200: shapes.Results})
    def post(self, request: Request) -> Response:
        """The messages that answer the question best, best first, each with why."""
        asked = self.read(shapes.SearchAsked)
        palace = self.palace(asked.get("user_id"))
        if palace is None:
            return Response(shown.NOTHING_FOUND)
        session = asked.get("session_id")
        recollection = recall(
            palace,
            asked["query"],
            top_k=asked["limit"],
            leave_out=_outside(palace, session) if session else (),
        )
        return Response(shown.found(recollection))


def _outside(palace: Palace, session: str) -> list[int]:
    inside = _of_session(palace, session).values("pk")
    drawers = Drawer.objects.within(palace).exclude(pk__in=inside)
    return list(drawers.order_by().values_list("pk", flat=True))


class UserMemoriesView(ApiView):
    @extend_schema(tags=TAG, parameters=[shapes.MemoriesAsked], responses={200: shapes.Memories})
    def get(self, request: Request, user_id: str) -> Response:
        """All that was ever held of a person, newest first, with what took whose place."""
        asked = self.read_query(shapes.MemoriesAsked)
        palace = self.palace(user_id)
        facts = Fact.objects.filter(palace=palace)
        if asked["active"] is not None:
            facts = facts.filter(retired_at__isnull=asked["active"])
        return Response({"memories": shown.memories(facts, asked["limit"]), "total": facts.count()})


class UserView(ApiView):
    scopes: ClassVar[dict[str, str]] = {"DELETE": "admin"}

    @extend_schema(tags=TAG, request=None, responses={204: None})
    def delete(self, request: Request, user_id: str) -> Response:
        """Delete a person's palace with everything in it, for good; also when there is none."""
        palace = Palace.objects.filter(
            owner=self.key.owner_id, subject=subject_for(self.key, user_id)
        ).first()
        if palace is not None:
            delete_palace(palace)
        return Response(status=204)


class SessionView(ApiView):
    @extend_schema(
        tags=TAG,
        request=None,
        parameters=[
            OpenApiParameter("user_id", OpenApiTypes.STR, description="Whose; else anybody's.")
        ],
        responses={204: None},
    )
    def delete(self, request: Request, session_id: str) -> Response:
        """Delete a conversation for good, and the facts that rest on it alone.

        Also when there is none.
        """
        user_id = request.query_params.get("user_id")
        if user_id is None:
            palaces = palaces_of(self.key)
        else:
            found = self.palace(user_id)
            palaces = [found] if found else []
        for palace in palaces:
            delete_conversation(palace, turn_ids.SOURCE, storable_id(session_id))
        return Response(status=204)
