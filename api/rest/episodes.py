"""/episodic/: summaries of conversations, stored and searched by meaning."""

from __future__ import annotations

from typing import ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from api.rest.fact_shapes import moment
from api.rest.parsing import ExactText, Shape
from api.rest.working_memory import PalaceRequest, WorkingMemoryApiView
from palace.knowledge.episodes import MOST_SUMMARY_CHARS
from palace.models import Episode
from palace.recall import MOST_QUERY_CHARS
from palace.sdk.arguments import DEFAULT_EPISODES, MOST_RESULTS

TAG = ["episodes"]


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
    @extend_schema(tags=TAG, parameters=[PalaceRequest], responses={200: EpisodesShown})
    def get(self, request: Request, conversation_id: str) -> Response:
        """List the episodes of a conversation, oldest first."""
        return self.of_conversation(conversation_id)


class StoreView(EpisodicView):
    @extend_schema(exclude=True, parameters=[PalaceRequest])
    def get(self, request: Request) -> Response:
        """List the episodes of a conversation whose id is `store`."""
        return self.of_conversation("store")

    @extend_schema(
        tags=TAG, parameters=[PalaceRequest], request=EpisodeStored, responses={201: EpisodeShown}
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
        tags=TAG,
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
