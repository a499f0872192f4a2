"""The settings' form as a browser sends it, and a saved choice."""

from __future__ import annotations

from settings_app.models import MemorySettings

KEY = "sk-proj-this-is-a-secret-key"
OTHER_KEY = "sk-proj-and-this-is-another"
IN_USE = "local all-MiniLM-L6-v2 384"

# What the form sends when nothing was chosen yet.
UNCHANGED = {
    "enabled": "on",
    "top_k": "5",
    "auto_mine": "on",
    "recipe": "default",
    "rerank_model": "",
    "provider": "server",
    "base_url": "",
    "model": "",
    "api_key": "",
    "embedding_model": IN_USE,
}
OPENAI = UNCHANGED | {"provider": "openai", "model": "gpt-5-mini"}


def without_none(data):
    """None for what a browser leaves out, such as a box that is not ticked."""
    return {name: value for name, value in data.items() if value is not None}


def own(model_server, **changed):
    """The form with the model server as one's own address."""
    return UNCHANGED | {
        "provider": "address",
        "base_url": model_server.base_url,
        "model": "gpt-4o-mini",
        **changed,
    }


def keep(owner, provider="openai", model="gpt-5-mini", key=KEY, **more):
    chosen = MemorySettings(owner=owner, provider=provider, model=model, **more)
    chosen.set_key(key)
    chosen.save()
    return chosen
