"""Dreams: what is held thought over while nobody waits, and changes proposed for it."""

from palace.knowledge.dreaming.settings_form import MOST_TOKENS, MOST_USD, DreamForm

__all__ = ["MOST_TOKENS", "MOST_USD", "DreamForm"]
