"""Signals of a score by their names for people, and each one's share of the score."""

from __future__ import annotations

from collections.abc import Mapping

# A signal's name, and what a large share of it says.
SIGNALS = {
    "meaning": ("Meaning", "its sense is close to the question’s"),
    "words": ("Words", "it shares rare words with the question"),
    "exchange": ("Exchange", "the messages just before and after it fit too"),
    "agreement": ("Agreement", "what it changes that sense and words both point to it"),
    "room": ("Room", "its whole conversation is about this"),
    "speaker": ("Speaker", "the one who said it is the one asked about"),
    "time": ("Time", "it was said when the question points to"),
    "preference": ("Preference", "it states a lasting wish or taste"),
    "statement": ("Statement", "it says the kind of thing that such a question wants"),
    "length": ("Length", "it has enough words to say something"),
}
REST = "other"
# A smaller rest is a rounding error of the stored shares.
SMALLEST_REST = 0.005


def label_of(signal: str) -> str:
    return SIGNALS[signal][0] if signal in SIGNALS else signal.replace("_", " ").capitalize()


def all_shares(score: float, signals: Mapping[str, float]) -> dict[str, float]:
    """The signals' shares, and the rest if there is one: together they are the score."""
    rest = score - sum(signals.values())
    return {**signals, REST: round(rest, 4)} if abs(rest) >= SMALLEST_REST else dict(signals)
