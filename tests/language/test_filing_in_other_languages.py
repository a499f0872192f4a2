"""Titles and wings of talk in languages other than English."""

from __future__ import annotations

import pytest

from language.other_languages import noun_phrases
from tests.language.conversations import asked, read


def test_a_talk_in_another_language_is_titled_in_it_by_what_returns():
    window = asked(
        "Das Turmuhrwerk geht am Tag vier Minuten vor, was kann ich da machen?",
        "Wie lang ist das Pendel?",
        "Das Pendel ist zwei Meter lang, und das Turmuhrwerk ist von 1887.",
        "Dann verlängern Sie es ein wenig.",
    )
    assert read(window).title in ("Turmuhrwerk", "Pendel")


@pytest.mark.parametrize(
    ("text", "language", "found"),
    [
        ("Ich habe den alten Kasten und die Uhr.", "de", ["alten Kasten"]),
        ("Perdí el recibo de luz ayer.", "es", ["recibo de luz"]),
        ("Il faut l'adresse de la gare.", "fr", ["adresse de la gare", "gare"]),
        ("表町の将棋サロンに行った。", "ja", ["表町の将棋サロン"]),
        ("Kupiłem nowy rower.", "pl", []),
    ],
)
def test_noun_phrases_of_other_languages(text, language, found):
    assert list(noun_phrases(text, language)) == found


def test_another_language_is_not_what_a_talk_is_about():
    window = asked(
        "Wie lange muss der Teig für das Brot gehen, damit es schön luftig wird und nicht reißt?",
        "Etwa zwei Stunden.",
        "Und wie heiß muss der Ofen sein, wenn ich zwei Brote auf einmal hineinschiebe?",
        "Sehr heiß, zweihundertvierzig Grad.",
    )
    assert read(window).wing.name not in ("Writing & language", "Software & computers")
