"""What can go wrong with a model. Each message says what was wrong and what to do.

No message ever holds an API key or any of the text that was sent.
"""

from __future__ import annotations


class LLMError(Exception):
    """A model could not do what was asked of it; `code` is stable, for programs and for `Usage`."""

    code = "llm_error"


class ModelUnavailable(LLMError):
    """The model is down, slow or busy: the same call may work later."""

    code = "model_unavailable"


class ModelRefused(LLMError):
    """The provider turned the call down: a wrong key, an unknown model, a bad setting."""

    code = "model_refused"


class BadModelOutput(LLMError):
    """The model answered, but not with what was asked for, and a second try was no better."""

    code = "bad_model_output"


class EmbedderUnavailable(LLMError):
    """The embedding model is down, slow or busy: the same call may work later."""

    code = "embedder_unavailable"


class EmbedderMisconfigured(LLMError):
    """The embedding model cannot work as it is set up, and trying again would change nothing."""

    code = "embedder_misconfigured"


class RerankerUnavailable(LLMError):
    """The reranker was not done in time, or broke off: the same call may work later."""

    code = "reranker_unavailable"


class RerankerMisconfigured(LLMError):
    """The reranker cannot work as it is set up, and trying again would change nothing."""

    code = "reranker_misconfigured"
