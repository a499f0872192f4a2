"""Errors of model calls. Each message says what is wrong and what to do.

No message contains an API key or any of the text that was sent.
"""

from __future__ import annotations


class LLMError(Exception):
    """A model call failed; `code` is stable, for programs and for `Usage`."""

    code = "llm_error"


class ModelUnavailable(LLMError):
    """The model is down, slow or busy; the same call may work later."""

    code = "model_unavailable"


class ModelRefused(LLMError):
    """The provider refused the call: a wrong key, an unknown model, a bad setting."""

    code = "model_refused"


class BadModelOutput(LLMError):
    """The model's answer is unusable, also after a second try."""

    code = "bad_model_output"


class EmbedderUnavailable(LLMError):
    """The embedding model is down, slow or busy: the same call may work later."""

    code = "embedder_unavailable"


class EmbedderMisconfigured(LLMError):
    """The embedding model is misconfigured; retrying does not help."""

    code = "embedder_misconfigured"


class RerankerUnavailable(LLMError):
    """The reranker timed out or failed; the same call may work later."""

    code = "reranker_unavailable"


class RerankerMisconfigured(LLMError):
    """The reranker is misconfigured; retrying does not help."""

    code = "reranker_misconfigured"
