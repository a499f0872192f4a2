"""Fit recall's floor to made-up questions: logistic regression, and the choice of a threshold.

Pure and deterministic.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from palace.recall import E5, MINILM
from palace.recall.relevance import BY_WORDS, OTHER, Closeness

Floats = npt.NDArray[np.float64]

OBSERVED = Path(__file__).parent / "floor"
ANSWERABLE, NEAR_MISS, OFF_TOPIC = "answerable", "near miss", "off-topic"
# At most this share of the answerable questions may be refused.
MOST_LOST = 0.02
# A model's features, by its name.
FEATURES = {
    MINILM: ("bias", "cosine", "words", "known", "personal"),
    E5: ("bias", "cosine", "words", "known", "personal"),
    OTHER: ("bias", "deviations", "words", "known", "personal"),
    BY_WORDS: ("bias", "words", "known", "personal"),
}
# Ridge regression of standardised weights, in questions of each kind.
RIDGE, QUESTIONS = 1.0, 200.0
# Which models the observations with an embedder's vectors are for.
FITTED = {MINILM: (MINILM, OTHER, BY_WORDS), E5: (E5,)}
STEPS = 30
# The curve: thresholds around the chosen one.
CURVE = (-2.0, -1.5, -1.0, -0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0)


@dataclass(frozen=True, slots=True)
class Observation:
    """A question asked of one palace.

    Attributes:
        person: Whose question it is: folds leave out whole people.
        exempt: The floor does not apply to it, or to its answer.
        found: Its answer is among the first ten by score; always true for other kinds.
    """

    kind: str
    palace: str
    person: str
    exempt: bool
    found: bool
    cosine: float
    deviations: float
    words: float
    known: float
    number: int
    personal: bool

    def features(self) -> dict[str, float]:
        return Closeness(
            self.cosine,
            self.deviations,
            self.words,
            self.known,
            self.number,
            self.personal,
            has_vectors=True,
        ).features()


@dataclass(frozen=True, slots=True)
class Fitted:
    """
    Attributes:
        least: The chosen threshold.
        curve: By threshold, the refused share of each kind, by models that were not fitted on
            the person.
    """

    weights: dict[str, float]
    least: float
    curve: list[dict[str, float]]

    @property
    def model(self) -> dict[str, Any]:
        """In the form that recall reads."""
        return {"weights": self.weights, "least": self.least}


def write(observations: Sequence[Observation], embedder: str) -> None:
    with (OBSERVED / f"{embedder}.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(field.name for field in fields(Observation))
        for each in observations:
            values = (getattr(each, field.name) for field in fields(Observation))
            writer.writerow(int(v) if isinstance(v, bool) else v for v in values)


def read(embedder: str) -> list[Observation]:
    with (OBSERVED / f"{embedder}.csv").open(encoding="utf-8", newline="") as file:
        return [_observation(row) for row in csv.DictReader(file)]


def _observation(row: dict[str, str]) -> Observation:
    return Observation(
        row["kind"],
        row["palace"],
        row["person"],
        exempt=row["exempt"] == "1",
        found=row["found"] == "1",
        cosine=float(row["cosine"]),
        deviations=float(row["deviations"]),
        words=float(row["words"]),
        known=float(row["known"]),
        number=int(row["number"]),
        personal=row["personal"] == "1",
    )


def fit_all(observations: Sequence[Observation], embedder: str) -> dict[str, Fitted]:
    return {name: fit(observations, name) for name in FITTED[embedder]}


def fit(observations: Sequence[Observation], name: str) -> Fitted:
    names = FEATURES[name]
    # Leave out answers that no threshold can bring back: those that recall does not find.
    fair = [
        o
        for o in observations
        if o.kind != ANSWERABLE or (o.found and (name != BY_WORDS or o.words > 0))
    ]
    rows = np.array([[o.features()[feature] for feature in names] for o in fair])
    kinds = np.array([o.kind for o in fair])
    people = np.array([o.person for o in fair])
    learns = kinds != NEAR_MISS
    unseen = np.empty(len(fair))
    for person in sorted(set(people)):
        inside = learns & (people != person)
        unseen[people == person] = rows[people == person] @ _weights(rows[inside], kinds[inside])
    unseen[[o.exempt for o in fair]] = np.inf
    weights = _weights(rows[learns], kinds[learns])
    least = float(np.quantile(unseen[kinds == ANSWERABLE], MOST_LOST, method="lower"))
    return Fitted(
        {feature: round(float(w), 3) for feature, w in zip(names, weights, strict=True)},
        round(least - 0.005, 2),
        list(_curve(unseen, kinds, round(least - 0.005, 2))),
    )


def _curve(
    scores: Floats, kinds: npt.NDArray[np.str_], chosen: float
) -> Iterator[dict[str, float]]:
    for least in sorted({chosen, *(round(chosen + step, 2) for step in CURVE)}):
        yield {"least": least} | {
            kind: round(float((scores[kinds == kind] < least).mean()), 4)
            for kind in (OFF_TOPIC, NEAR_MISS, ANSWERABLE)
        }


def _weights(rows: Floats, kinds: npt.NDArray[np.str_]) -> Floats:
    """Newton's method; both kinds have equal weight. The first column is the bias."""
    answerable = kinds == ANSWERABLE
    counts = np.where(answerable, QUESTIONS / answerable.sum(), QUESTIONS / (~answerable).sum())
    mean, spread = rows.mean(axis=0), rows.std(axis=0)
    mean[0], spread[0] = 0.0, 1.0
    scaled = (rows - mean) / spread
    pull = RIDGE * np.diag([0.0, *[1.0] * (rows.shape[1] - 1)])
    weights = np.zeros(rows.shape[1])
    for _ in range(STEPS):
        chance = 1 / (1 + np.exp(-scaled @ weights))
        slope = scaled.T @ (counts * (chance - answerable)) + pull @ weights
        bend = (scaled.T * (counts * chance * (1 - chance))) @ scaled + pull
        weights -= np.linalg.solve(bend, slope)
    own = weights / spread
    own[0] -= float((own[1:] * mean[1:]).sum())
    return np.asarray(own)
