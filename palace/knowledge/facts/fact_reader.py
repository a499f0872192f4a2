"""Read messages for facts: with the owner's model if there is one, else by local rules."""

from __future__ import annotations

from collections.abc import Sequence

from language.english.fact_prompt import MOST_FACTS, FactsAnswer, checked, messages
from language.english.facts.reading import read_facts
from language.facts import Candidate
from language.transcripts import Turn
from llm import sent
from llm.errors import LLMError
from llm.providers import Endpoint
from palace.knowledge.facts.model_calls import OF_THE_CALLER, ask
from palace.models import Palace
from settings_app.models import ModelUse, settings_of

BY_RULES = "Facts were found without the language model."


class FactReader:
    """
    Attributes:
        endpoint: The owner's model; None if there is none.
        notes: What was degraded, in sentences.
    """

    def __init__(self, palace: Palace, prompt: str = "") -> None:
        chosen = settings_of(palace.owner_id).chat_model(ModelUse.FACTS)
        self.endpoint = chosen.endpoint
        self.notes = [chosen.note] if chosen.note else []
        self._owner_id = palace.owner_id
        self._prompt = prompt

    def read(self, turns: Sequence[Turn]) -> list[Candidate]:
        """Extract candidates, in the order of the messages.

        If the model fails, or none of its facts is usable, the local rules read instead. A note
        says so.
        """
        if self.endpoint is None:
            return read_facts(turns)
        try:
            found, unusable = read_with_model(
                turns, endpoint=self.endpoint, owner_id=self._owner_id, prompt=self._prompt
            )
        except LLMError as error:
            self.notes.append(f"{BY_RULES} {error}")
            return read_facts(turns)
        if unusable and not found:
            self.notes.append(f"{BY_RULES} {self.endpoint} gave only incomplete facts.")
            return read_facts(turns)
        if unusable:
            self.notes.append(f"{self.endpoint} gave incomplete facts, which were left out.")
        return found


def read_with_model(
    turns: Sequence[Turn], *, endpoint: Endpoint, owner_id: int, prompt: str | None = None
) -> tuple[list[Candidate], int]:
    """Extract candidates, in the order of the messages, and count the facts that are unusable.

    Raises:
        LLMError: the model is not available, or its answer is invalid.
    """
    instructions = "facts" if not prompt else OF_THE_CALLER
    with sent.made_of([f"{sent.INSTRUCTIONS}:{instructions}"]):
        answer = ask(messages(turns, prompt), FactsAnswer, endpoint=endpoint, owner_id=owner_id)
    found = checked(answer.facts, turns)
    return found, min(len(answer.facts), MOST_FACTS) - len(found)
