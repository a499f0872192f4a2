"""Statement: what kind of thing a message says, whatever it is about.

What asks, greets or thanks is near a question and answers nothing; what names a day, a place or a
number mostly does.
"""

from __future__ import annotations

import numpy as np

from palace.recall.candidates import Candidates
from palace.recall.semantic import Scores
from palace.storage.indexing.traits import Trait

# Of the others `telling` makes what they are good for.
_OTHERS = Trait.ONLY_ASKS | Trait.ONLY_QUOTES | Trait.TAKES_UP
LEARNT = tuple(trait for trait in Trait if trait not in _OTHERS)


def has_trait(candidates: Candidates, trait: Trait) -> Scores:
    """1 for each that has it, else 0."""
    return ((candidates.traits & trait) > 0).astype(np.float32)
