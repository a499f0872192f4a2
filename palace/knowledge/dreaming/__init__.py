"""Dreams: proposals that tidy up facts, found by rules or a model, and decided by the user."""

from palace.knowledge.dreaming.decisions import (
    Decided,
    accept,
    accept_all,
    reject,
    reject_all,
    undo,
    undo_all,
)
from palace.knowledge.dreaming.dream_input import MOST_TOKENS, MOST_USD, DreamForm, read_directives
from palace.knowledge.dreaming.dream_run import (
    Dreamt,
    dream,
    dream_of,
    is_dreaming,
    is_due,
    palaces_due,
)
from palace.knowledge.dreaming.model_passes import Estimate, estimate
from palace.knowledge.dreaming.proposals import After, Finding, Kind, Quote, after_of, propose

__all__ = [
    "MOST_TOKENS",
    "MOST_USD",
    "After",
    "Decided",
    "DreamForm",
    "Dreamt",
    "Estimate",
    "Finding",
    "Kind",
    "Quote",
    "accept",
    "accept_all",
    "after_of",
    "dream",
    "dream_of",
    "estimate",
    "is_dreaming",
    "is_due",
    "palaces_due",
    "propose",
    "read_directives",
    "reject",
    "reject_all",
    "undo",
    "undo_all",
]
