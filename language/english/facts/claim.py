"""A verb said of somebody: what rules make statements of."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

from language.candidate import Words
from language.english.facts.grammar import Tense, Verb
from language.english.facts.people import Person

PAST_TENSES = frozenset({Tense.PAST, Tense.USED_TO})


@dataclass(frozen=True, slots=True)
class Claim:
    """A verb said of somebody, at these words.

    Attributes:
        lead: What stood before the subject: "Last year".
        said_at: When it was said, from which "yesterday" counts.
    """

    person: Person
    verb: Verb
    words: Words
    said_at: datetime
    lead: str = ""
    corrects: bool = False


def without_reasons(tail: str) -> str | None:
    if not tail:
        return ""
    said = re.split(
        r"\s*(?:[;(]|:(?!\d)| [-–—] |--|, (?:and|but|so|which|because)\b|\b(?:because"
        r"|so|but|which|and it|and I|when|if|while|since|as)\b)",
        tail,
    )[0]
    return (
        None
        if re.match(r"(?:it|that|this|them|there|what|to be|to see)\b", said)
        else said.strip(" ,")
    )
