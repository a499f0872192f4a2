"""Try a model out before it is relied on."""

from __future__ import annotations

from django.conf import settings

from llm import chat
from llm.messages import Ask
from llm.models import Usage
from llm.providers import Endpoint

# Somebody waits before a button.
TIMEOUT_S = 15
# The answer is a word, but some models think before they say it.
MAX_TOKENS = 1024

QUESTION: list[chat.Message] = [{"role": "user", "content": "Answer with the one word: OK"}]


def try_out(endpoint: Endpoint, *, owner_id: int) -> None:
    """One small question, metered as chat, asked once.

    Raises:
        ModelUnavailable, ModelRefused, BadModelOutput: as `llm.chat.complete()`.
    """
    from llm.asking import ask  # noqa: PLC0415 - see the top of llm.chat.

    how = Ask(
        endpoint,
        Usage.Purpose.CHAT,
        owner_id,
        max_tokens=MAX_TOKENS,
        timeout_s=min(TIMEOUT_S, settings.LLM_TIMEOUT_S),
        max_retries=0,
    )
    ask(QUESTION, how)
