"""Reading messages for facts: with the owner's model where there is one, else by local rules."""

from __future__ import annotations

from collections.abc import Sequence

from language.candidate import Candidate
from language.english.fact_prompt import messages
from language.english.facts.reading import read_facts
from language.fact_answers import FactsAnswer, checked
from language.transcripts import Turn
from llm.errors import LLMError
from llm.providers import Endpoint
from palace.knowledge.facts.model_calls import ask
from palace.models import Palace
from settings_app.models import settings_of


class FactReader:
    """
    Attributes:
        endpoint: The owner's model; None where there is none.
        notes: What was degraded, in sentences.
    """

    def __init__(self, palace: Palace, prompt: str = "") -> None:
        chosen = settings_of(palace.owner_id).chat_model()
        self.endpoint = chosen.endpoint
        self.notes = [chosen.note] if chosen.note else []
        self._owner_id = palace.owner_id
        self._prompt = prompt

    def read(self, turns: Sequence[Turn]) -> list[Candidate]:
        """What the messages say, in their order.

        A model that fails is done without: what the local rules find is kept, and a note says so.
        """
        if self.endpoint is None:
            return read_facts(turns)
        try:
            return read_with_model(
                turns, endpoint=self.endpoint, owner_id=self._owner_id, prompt=self._prompt
            )
        except LLMError as error:
            self.notes.append(f"Facts were found without the language model. {error}")
            return read_facts(turns)


def read_with_model(
    turns: Sequence[Turn], *, endpoint: Endpoint, owner_id: int, prompt: str | None = None
) -> list[Candidate]:
    """What the messages say, in their order.

    Raises:
        LLMError: the model cannot be asked, or answers nonsense.
    """
    answer = ask(messages(turns, prompt), FactsAnswer, endpoint=endpoint, owner_id=owner_id)
    return checked(answer.facts, turns)
