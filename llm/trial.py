"""Test a model from the settings page."""

from __future__ import annotations

from django.conf import settings

from llm import chat
from llm.messages import Ask
from llm.models import Usage
from llm.providers import Endpoint

# A person is waiting.
TIMEOUT_S = 15
# The answer is one word, but some models reason first.
MAX_TOKENS = 1024

QUESTION: list[chat.Message] = [{"role": "user", "content": "Answer with the one word: OK"}]


def try_out(endpoint: Endpoint, *, owner_id: int) -> None:
    """Send one small question, without retries, metered as chat.

    Raises:
        ModelUnavailable, ModelRefused, BadModelOutput: as `llm.chat.complete()`.
    """
    from llm.chat_calls import ask  # noqa: PLC0415 - see the top of llm.chat.

    how = Ask(
        endpoint,
        Usage.Purpose.CHAT,
        owner_id,
        max_tokens=MAX_TOKENS,
        timeout_s=min(TIMEOUT_S, settings.LLM_TIMEOUT_S),
        max_retries=0,
    )
    ask(QUESTION, how)
