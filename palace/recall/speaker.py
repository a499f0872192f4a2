"""Who speaks matters: "what did I…", "what did you suggest…", "what did Ann…"."""

from __future__ import annotations

import numpy as np

from language.english.intent import Intent
from palace.recall.candidates import Candidates
from palace.recall.semantic import Scores


def users_own(intent: Intent, candidates: Candidates) -> Scores:
    """1 for the person's own words, 0 for others'; the reverse when the question is about those."""
    about_others = intent.asks_assistant and not intent.asks_user
    return np.asarray((candidates.roles == "user") != about_others, dtype=np.float32)


def named_speaker(intent: Intent, candidates: Candidates) -> Scores:
    """1 where the speaker is somebody the question names."""
    names = {name.casefold() for name in intent.names}
    if not names:
        return np.zeros(len(candidates), dtype=np.float32)
    matches = [
        speaker.casefold() in names or speaker.casefold().split(" ")[0] in names
        for speaker in candidates.speakers
    ]
    return np.array(matches, dtype=np.float32)
