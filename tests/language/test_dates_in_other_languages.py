"""Phrases of time in questions of other languages than English."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from language.dates import read_time

NOW = datetime(2026, 11, 25, 12, 0, tzinfo=UTC)  # A Wednesday.


@pytest.mark.parametrize(
    ("question", "start", "end"),
    [
        ("Was habe ich vorgestern auf dem Markt eingekauft?", "2026-11-23", "2026-11-24"),
        ("Wo bin ich letzte Woche gewandert?", "2026-11-16", "2026-11-23"),
        ("Was ist im März mit dem Boot passiert?", "2026-03-01", "2026-04-01"),
        ("Worüber haben wir vor drei Wochen gesprochen?", "2026-11-02", "2026-11-09"),
        ("Was hab ich am Montag über die Heizung gesagt?", "2026-11-23", "2026-11-24"),
        ("¿Qué te conté anteayer sobre mi vecino?", "2026-11-23", "2026-11-24"),
        ("¿Qué pasó en marzo de 2025 con la tienda?", "2025-03-01", "2025-04-01"),
        ("Qu'est-ce que j'ai mangé avant-hier au restaurant ?", "2026-11-23", "2026-11-24"),
        ("O que eu disse sobre o barco no ano passado?", "2025-01-01", "2026-01-01"),
        ("Geçen hafta sana hangi kitabı anlattım?", "2026-11-16", "2026-11-23"),
        ("Что я рассказывал позавчера про лодку?", "2026-11-23", "2026-11-24"),
        ("先週どこに行ったか覚えていますか？", "2026-11-16", "2026-11-23"),
        ("我昨天晚饭吃了什么？", "2026-11-24", "2026-11-25"),
    ],
)
def test_a_phrase_is_read_in_its_language(question, start, end):
    [period] = read_time(question, NOW).periods
    assert (f"{period.start:%Y-%m-%d}", f"{period.end:%Y-%m-%d}") == (start, end)
    assert question[period.start_char : period.end_char] == period.text


@pytest.mark.parametrize(
    "question",
    [
        "Welche drei Katzen habe ich, und wie alt sind die zwei kleinen?",
        "¿Cuántos gatos tengo y qué comen los dos mayores?",
        "Quanti fratelli ha Giordano, due o tre?",
        "Kızımın adı ne ve kaç yaşında?",
    ],
)
def test_numbers_are_no_dates(question):
    assert read_time(question, NOW).periods == ()


def test_questions_in_english_are_read_by_the_rules_of_english():
    assert read_time("What did I say the Saturday before last?", NOW).periods


@given(st.text())
def test_any_text_can_be_read(text):
    read_time(text, NOW)
