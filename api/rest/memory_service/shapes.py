"""What the memory service is sent and answers."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from language.transcripts import ROLES
from palace.sdk.arguments import MOST_RESULTS

Shape = serializers.Serializer[Any]

MOST_MESSAGES = 1_000
MOST_TOKENS = 100_000


def user_field() -> serializers.CharField:
    said = "Whose palace; left out or null, your own."
    return ExactText(required=False, allow_null=True, help_text=said)


def recollection_field() -> serializers.UUIDField:
    said = "Its trace, which says why. Null where nobody was asked of."
    return serializers.UUIDField(allow_null=True, help_text=said)


def notes_field() -> serializers.ListField:
    said = "What was degraded or left out, in sentences."
    return serializers.ListField(child=serializers.CharField(), help_text=said)


class ExactText(serializers.CharField):
    """Text that is kept to the byte, and is not made of something else."""

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return data


class Message(Shape):
    role = serializers.ChoiceField(ROLES)
    content = ExactText(allow_blank=True, help_text="Kept to the byte.")
    name = serializers.CharField(required=False, allow_blank=True, help_text="Who speaks.")


class Turns(Shape):
    session_id = ExactText(help_text="The conversation; a name of your own.")
    user_id = user_field()
    messages = serializers.ListField(child=Message(), allow_empty=False, max_length=MOST_MESSAGES)
    timestamp = serializers.DateTimeField(
        required=False, allow_null=True, help_text="When it was said; now unless given."
    )
    metadata = serializers.DictField(
        required=False, allow_null=True, help_text="Kept beside each message."
    )


class TurnKept(Shape):
    id = serializers.CharField(help_text="Of the turn; citations name it.")
    session_id = serializers.CharField()
    drawers = serializers.ListField(
        child=serializers.UUIDField(), help_text="Of its messages, in order."
    )
    extraction = serializers.ChoiceField(
        ["complete", "degraded"],
        help_text="degraded: all is kept and can be found; facts may be missing, or come later.",
    )
    notes = notes_field()


class RecallAsked(Shape):
    query = ExactText(help_text="A question, or the message to be answered.")
    session_id = ExactText(
        required=False, allow_null=True, help_text="Its latest turns end the context."
    )
    user_id = user_field()
    max_tokens = serializers.IntegerField(
        required=False,
        default=1024,
        min_value=1,
        max_value=MOST_TOKENS,
        help_text="The context's length at most.",
    )
    top_k = serializers.IntegerField(
        required=False, allow_null=True, min_value=1, max_value=200, help_text="Drawers at most."
    )
    recipe = serializers.CharField(
        required=False, allow_null=True, help_text="How it looks; your own choice unless given."
    )
    as_of = serializers.DateTimeField(
        required=False, allow_null=True, help_text="Leave out what was said later."
    )
    agent_id = serializers.CharField(
        required=False, allow_null=True, help_text="Facts kept for this agent come, too."
    )


class CitationShown(Shape):
    turn_id = serializers.CharField(
        allow_null=True, help_text="Of POST /turns; else of the drawer. Null: no words are left."
    )
    score = serializers.FloatField(help_text="Compares within this answer only.")
    snippet = serializers.CharField(help_text="Up to 160 characters.")
    pointer = serializers.CharField(allow_null=True)
    drawer = serializers.UUIDField(allow_null=True)
    memory = serializers.UUIDField(allow_null=True, help_text="Where the line is a fact.")


class Recalled(Shape):
    context = serializers.CharField(  # type: ignore[assignment]
        help_text="For a model; empty where nothing fits."
    )
    citations = CitationShown(many=True)
    tokens = serializers.IntegerField(help_text="The context's length.")
    recollection = recollection_field()
    notes = notes_field()


class SearchAsked(Shape):
    query = ExactText(help_text="A question, or words.")
    session_id = ExactText(required=False, allow_null=True, help_text="Only what was said in it.")
    user_id = user_field()
    limit = serializers.IntegerField(required=False, default=10, min_value=1, max_value=200)


class Found(Shape):
    content = serializers.CharField(help_text="To the byte.")
    score = serializers.FloatField(help_text="Compares within this answer only.")
    session_id = serializers.CharField()
    timestamp = serializers.DateTimeField()
    metadata = serializers.DictField()
    role = serializers.CharField()
    turn_id = serializers.CharField()
    drawer = serializers.UUIDField()
    pointer = serializers.CharField()
    signals = serializers.DictField(
        child=serializers.FloatField(), help_text="Shares of the score, which add up to it."
    )


class Results(Shape):
    results = Found(many=True)
    recollection = recollection_field()
    notes = notes_field()


class MemoriesAsked(Shape):
    limit = serializers.IntegerField(
        required=False, default=1000, min_value=1, max_value=MOST_RESULTS
    )
    active = serializers.BooleanField(
        required=False, allow_null=True, default=None, help_text="Only those held, or only others."
    )


class MemoryShown(Shape):
    id = serializers.UUIDField(help_text="Of this version.")
    memory = serializers.UUIDField(help_text="Shared by all versions of a memory.")
    type = serializers.CharField()
    subject = serializers.CharField()
    key = serializers.CharField(help_text="The predicate.")
    value = serializers.CharField(help_text="The object.")
    aspect = serializers.CharField(allow_null=True)
    stance = serializers.CharField(allow_null=True)
    text = serializers.CharField()
    confidence = serializers.FloatField()
    source_session = serializers.CharField(allow_null=True)
    source_turn = serializers.CharField(allow_null=True)
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()
    valid_from = serializers.DateTimeField(allow_null=True)
    valid_to = serializers.DateTimeField(allow_null=True)
    supersedes = serializers.UUIDField(allow_null=True, help_text="The version before it.")
    active = serializers.BooleanField()


class Memories(Shape):
    memories = MemoryShown(many=True)
    total = serializers.IntegerField()
