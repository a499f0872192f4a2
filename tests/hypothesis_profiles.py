"""How long property tests look: a quarter as long every day as in `make test-all`.

`--hypothesis-profile=thorough` says that it is the latter.
"""

from __future__ import annotations

from hypothesis import settings

EVERYDAY, THOROUGH = "everyday", "thorough"
FEWEST = 5


def register_profiles() -> None:
    settings.register_profile(EVERYDAY, max_examples=25, deadline=None)
    settings.register_profile(THOROUGH, max_examples=100, deadline=None)
    settings.load_profile(EVERYDAY)


def examples(thorough: int) -> int:
    """How many examples to try where a thorough run tries so many."""
    return max(FEWEST, thorough * settings().max_examples // 100)


def is_thorough() -> bool:
    return settings.get_current_profile_name() == THOROUGH
