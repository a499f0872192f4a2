"""Views of the memory service: /turns, /recall, /search, /users, /sessions and /episodic.

The last are summaries of conversations, stored and searched by meaning.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, ClassVar

from django.conf import settings
from django.db.models import Q
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import MethodNotAllowed
from rest_framework.request import Request
from rest_framework.response import Response

from api.rest import memory_shapes
from api.rest.access import palaces_for
from api.rest.base import ApiView, number_in
from api.rest.fact_shapes import moment
from api.rest.parsing import ExactText, Shape
from api.rest.problems import Problem
from api.rest.working_memory import PalaceRequest, WorkingMemoryApiView
from language.storable import storable_id
from language.transcripts import Transcript, Turn
from palace.curation.deletion import delete_palace, delete_session
from palace.knowledge.episodes import MOST_SUMMARY_CHARS
from palace.mining.pipeline import mine_at_once
from palace.mining.tasks import enqueue_rest
from palace.models import Drawer, DrawerQuerySet, Episode, Fact, Palace
from palace.recall import MOST_QUERY_CHARS, PackableTurn, RecallRequest, recall
from palace.sdk.arguments import DEFAULT_EPISODES, MOST_RESULTS, metadata_of
from settings_app import throttling

logger = logging.getLogger(__name__)

# The number of latest session messages appended to the context.
LATEST = 3
TAG = ["memory service"]
AMBIGUOUS = (
    "Several users have a session of this name, and nothing was deleted. Name one of them by "
    "user_id."
)
EPISODES_TAG = ["episodes"]


class TurnsView(ApiView):
    @extend_schema(tags=TAG, request=memory_shapes.Turns, responses={201: memory_shapes.TurnKept})
    def post(self, request: Request) -> Response:
        """Store messages verbatim, searchable at once, and extract facts.

        Answers within a minute. What is not read by then is queued, and the answer says so:
        `extraction` is `degraded`, with a sentence in `notes`.
        """
        params = self.read(memory_shapes.Turns)
        turn = memory_shapes.new_turn(self.write)
        transcript = _transcript(turn, params)
        palace = self.palace_made(params.get("user_id"))
        done = mine_at_once(palace, transcript, seconds=settings.TURN_DEADLINE_S)
        enqueue_rest(palace.pk, done)
        return Response(memory_shapes.kept(turn, params["session_id"], done), 201)


def _transcript(turn: str, params: dict[str, Any]) -> Transcript:
    said_at = params.get("timestamp") or timezone.now()
    kept_with = metadata_of(params.get("metadata")) or None
    turns = [
        Turn(
            memory_shapes.message_id(turn, place),
            message["role"],
            message["content"] or "",
            said_at,
            message.get("name", ""),
            kept_with,
        )
        for place, message in enumerate(params["messages"])
    ]
    return Transcript(memory_shapes.SOURCE, params["session_id"], "", tuple(turns), is_request=True)


class RecallView(ApiView):
    only_reads: ClassVar[bool] = True

    def cost_of(self, fields: Mapping[str, Any]) -> int:
        tokens = number_in(fields, "max_tokens", memory_shapes.DEFAULT_TOKENS)
        return throttling.cost_of(tokens=tokens, results=number_in(fields, "top_k", 1))

    @extend_schema(
        tags=TAG, request=memory_shapes.RecallFields, responses={200: memory_shapes.Recalled}
    )
    def post(self, request: Request) -> Response:
        """Recall facts and messages that answer the question, within a token budget.

        The context is empty for unknown users.
        """
        params = self.read(memory_shapes.RecallFields)
        palace = self.palace(params.get("user_id"))
        if palace is None:
            return Response(memory_shapes.NOTHING_RECALLED)
        agent = storable_id(params.get("agent_id") or "")
        recollection = recall(
            palace,
            RecallRequest(
                params["query"],
                top_k=params.get("top_k"),
                as_of=params.get("as_of"),
                recipe=params.get("recipe"),
                budget_tokens=params["max_tokens"],
                with_facts=True,
                session=_latest(palace, params.get("session_id"), agent),
                agent=agent,
            ),
        )
        return Response(memory_shapes.recalled(recollection))


def _latest(palace: Palace, session: str | None, agent: str) -> list[PackableTurn]:
    if not session:
        return []
    drawers = _of_session(session).within(palace).kept().for_agent(agent)
    return list(reversed(drawers.order_by("-said_at", "-position", "-pk")[:LATEST]))


def _of_session(session: str) -> DrawerQuerySet:
    """The session's drawers in any palace of the key."""
    return Drawer.objects.filter(
        source__in=memory_shapes.SESSION_SOURCES, conversation=storable_id(session)
    )


class SearchView(ApiView):
    only_reads: ClassVar[bool] = True

    @extend_schema(
        tags=TAG, request=memory_shapes.SearchFields, responses={200: memory_shapes.Results}
    )
    def post(self, request: Request) -> Response:
        """Search the messages that answer the question best, with each one's scoring signals."""
        params = self.read(memory_shapes.SearchFields)
        palace = self.palace(params.get("user_id"))
        if palace is None:
            return Response(memory_shapes.NOTHING_FOUND)
        session = params.get("session_id")
        recollection = recall(
            palace,
            RecallRequest(
                params["query"],
                top_k=params["limit"],
                as_of=params.get("as_of"),
                agent=storable_id(params.get("agent_id") or ""),
                only_ids=_inside(palace, session) if session else None,
            ),
        )
        return Response(memory_shapes.found(recollection))


def _inside(palace: Palace, session: str) -> list[int]:
    drawers = _of_session(session).within(palace).kept()
    return list(drawers.order_by().values_list("pk", flat=True))


class UserView(ApiView):
    scopes: ClassVar[dict[str, str]] = {"DELETE": "admin"}

    @extend_schema(tags=TAG, request=None, responses={204: None})
    def delete(self, request: Request, user_id: str) -> Response:
        """Permanently delete a person's palace; succeeds even if there is none."""
        palace = self.palace(user_id)
        if palace is not None:
            delete_palace(palace)
        return Response(status=204)


class UserMemoriesView(UserView):
    usual_results = memory_shapes.DEFAULT_MEMORIES

    @extend_schema(
        tags=TAG,
        parameters=[memory_shapes.MemoriesRequest],
        responses={200: memory_shapes.Memories},
    )
    def get(self, request: Request, user_id: str) -> Response:
        """List all facts about a person, newest first, with their versions.

        Excludes deleted memories and those whose sources are in the trash.
        """
        params = self.read_query(memory_shapes.MemoriesRequest)
        palace = self.palace(user_id)
        facts = Fact.objects.filter(palace=palace).remembered()
        if params["active"] is not None:
            facts = facts.filter(retired_at__isnull=params["active"])
        return Response(
            {"memories": memory_shapes.memories(facts, params["limit"]), "total": facts.count()}
        )

    @extend_schema(exclude=True, request=None)
    def delete(self, request: Request, user_id: str) -> Response:
        """Delete the palace of a user whose id ends in `/memories`.

        Raises:
            MethodNotAllowed: only the user before `/memories` exists, whose memories were meant.
        """
        whole = f"{user_id}/memories"
        if self.palace(whole) is None and self.palace(user_id) is not None:
            raise MethodNotAllowed("DELETE")
        return super().delete(request, whole)


class SessionView(ApiView):
    @extend_schema(
        tags=TAG,
        request=None,
        parameters=[
            OpenApiParameter(
                "user_id",
                OpenApiTypes.STR,
                description="Whose session. Required if several users have one of this name.",
            )
        ],
        responses={204: None},
    )
    def delete(self, request: Request, session_id: str) -> Response:
        """Permanently delete a conversation, its summaries, and facts without other sources.

        The session of a turn, the `run_id` of the fact API, and the conversation id of the proxy
        or MCP. 204 also where there is no such session. 409 with `ambiguous_session` where
        several users have one and `user_id` is missing; nothing is deleted then.
        """
        palace = self._palace_with(session_id, request.query_params.get("user_id"))
        if palace is not None:
            delete_session(palace, _of_session(session_id), storable_id(session_id))
        return Response(status=204)

    def _palace_with(self, session_id: str, user_id: str | None) -> Palace | None:
        """
        Raises:
            Problem: 409, no user is given and several have such a session.
        """
        if user_id is not None:
            return self.palace(user_id)
        summaries = Episode.objects.stored().filter(conversation=storable_id(session_id))
        either = Q(pk__in=_of_session(session_id).values("palace"))
        either |= Q(pk__in=summaries.values("palace"))
        having = list(palaces_for(self.key).filter(either)[:2])
        if len(having) > 1:
            raise Problem(409, "ambiguous_session", AMBIGUOUS)
        return having[0] if having else None


def listed(said: str) -> serializers.ListField:
    return serializers.ListField(required=False, default=list, help_text=said)


def agent_field(said: str) -> ExactText:
    return ExactText(required=False, allow_null=True, default=None, help_text=said)


class EpisodeStored(PalaceRequest):
    conversation_id = ExactText(help_text="Your own id.")
    summary = ExactText(max_length=MOST_SUMMARY_CHARS)
    key_decisions = listed("Texts or any JSON values.")
    entities = listed("Likewise.")
    tools = listed("Likewise.")
    agent_id = agent_field("The agent of the conversation.")
    started_at = moment("When the conversation started.")
    ended_at = moment("When the conversation ended.")


class EpisodesRequest(PalaceRequest):
    query = ExactText(max_length=MOST_QUERY_CHARS, help_text="The search query.")
    agent_id = agent_field(
        "Only this agent's episodes. Without a user_id, a key for all palaces searches all of them."
    )
    limit = serializers.IntegerField(
        required=False, default=DEFAULT_EPISODES, min_value=1, max_value=MOST_RESULTS
    )
    as_of = moment("Only conversations that had started by then.")


class EpisodeShown(Shape):
    id = serializers.UUIDField()
    conversation_id = serializers.CharField()
    user_id = serializers.CharField(allow_null=True)
    agent_id = serializers.CharField(allow_null=True)
    summary = serializers.CharField()
    key_decisions = serializers.ListField()
    entities = serializers.ListField()
    tools = serializers.ListField()
    made_by = serializers.ChoiceField(Episode.Maker.values)
    started_at = serializers.DateTimeField(allow_null=True)
    ended_at = serializers.DateTimeField(allow_null=True)
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()


class EpisodeFound(EpisodeShown):
    score = serializers.FloatField(help_text="(1 + cosine) / 2, from 0 to 1.")
    similarity = serializers.FloatField(help_text="The cosine, from -1 to 1.")


class EpisodesShown(Shape):
    results = EpisodeShown(many=True)


class EpisodesFound(Shape):
    results = EpisodeFound(many=True)


class EpisodicView(WorkingMemoryApiView):
    def of_conversation(self, conversation_id: str) -> Response:
        episodes = self.memory.episodes(user_id=self.user())
        return Response({"results": episodes.of_conversation(conversation_id)})


class EpisodesView(EpisodicView):
    @extend_schema(tags=EPISODES_TAG, parameters=[PalaceRequest], responses={200: EpisodesShown})
    def get(self, request: Request, conversation_id: str) -> Response:
        """List the episodes of a conversation, oldest first."""
        return self.of_conversation(conversation_id)


class StoreView(EpisodicView):
    @extend_schema(exclude=True, parameters=[PalaceRequest])
    def get(self, request: Request) -> Response:
        """List the episodes of a conversation whose id is `store`."""
        return self.of_conversation("store")

    @extend_schema(
        tags=EPISODES_TAG,
        parameters=[PalaceRequest],
        request=EpisodeStored,
        responses={201: EpisodeShown},
    )
    def post(self, request: Request) -> Response:
        """Store another summary of a conversation."""
        params = self.read(EpisodeStored)
        episodes = self.memory.episodes(user_id=self.user(params))
        del params["user_id"]
        return Response(episodes.store(**params), 201)


class SearchEpisodesView(EpisodicView):
    only_reads: ClassVar[bool] = True

    @extend_schema(exclude=True, parameters=[PalaceRequest])
    def get(self, request: Request) -> Response:
        """List the episodes of a conversation whose id is `search`."""
        return self.of_conversation("search")

    @extend_schema(
        tags=EPISODES_TAG,
        parameters=[PalaceRequest],
        request=EpisodesRequest,
        responses={200: EpisodesFound},
    )
    def post(self, request: Request) -> Response:
        """Search episodes by meaning, best first."""
        params = self.read(EpisodesRequest)
        episodes = self.memory.episodes(user_id=self.user(params))
        del params["user_id"]
        return Response({"results": episodes.search(**params)})
