"""Phrases of time in questions of other languages than English."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import language.dates
from language.dates import read_time

WORDS = Path(language.dates.__file__).with_name("spoken_dates.json")
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
    ("question", "phrase", "start", "end"),
    [
        ("Was hatten wir letzten Dienstag besprochen?", "letzten Dienstag", "11-24", "11-25"),
        ("Wo war ich letzten Mittwoch, noch in Wien?", "letzten Mittwoch", "11-18", "11-19"),
        ("¿Dónde estuve la semana pasada?", "la semana pasada", "11-16", "11-23"),
        ("¿Qué pasó hace dos semanas?", "hace dos semanas", "11-09", "11-16"),
        ("¿Qué hice el mes pasado?", "el mes pasado", "10-01", "11-01"),
        ("Où étais-je la semaine dernière ?", "la semaine dernière", "11-16", "11-23"),
        ("Qu'ai-je fait il y a deux semaines ?", "il y a deux semaines", "11-09", "11-16"),
        ("Cosa ho detto l'altro ieri?", "l'altro ieri", "11-23", "11-24"),
        ("Cosa è successo due settimane fa?", "due settimane fa", "11-09", "11-16"),
        ("O que aconteceu há duas semanas?", "há duas semanas", "11-09", "11-16"),
        ("Wat deed ik twee weken geleden?", "twee weken geleden", "11-09", "11-16"),
        ("evvelsi gün sana ne demiştim?", "evvelsi gün", "11-23", "11-24"),
        ("iki hafta önce ne oldu?", "iki hafta önce", "11-09", "11-16"),
        ("Где я был на прошлой неделе?", "на прошлой неделе", "11-16", "11-23"),
        ("おととい何て言った？", "おととい", "11-23", "11-24"),
        ("三日前に何を話した？", "三日前", "11-22", "11-23"),
        ("先週の月曜日は何をした？", "先週の月曜日", "11-16", "11-17"),
        ("3月に何があった？", "3月", "03-01", "04-01"),
        ("上周一我做了什么？", "上周一", "11-16", "11-17"),
        ("2026年3月5日发生了什么？", "2026年3月5日", "03-05", "03-06"),
        ("两周前我说了什么？", "两周前", "11-09", "11-16"),
        ("지난주에 뭐라고 했지?", "지난주", "11-16", "11-23"),
        ("그저께 뭐 먹었어?", "그저께", "11-23", "11-24"),
    ],
)
def test_spoken_dates_are_read_whole(question, phrase, start, end):
    [period] = read_time(question, NOW).periods
    assert (f"{period.start:%m-%d}", f"{period.end:%m-%d}") == (start, end)
    assert period.text == question[period.start_char : period.end_char] == phrase


@pytest.mark.parametrize("language", json.loads(WORDS.read_text(encoding="utf-8")))
def test_each_language_has_all_words(language):
    words = json.loads(WORDS.read_text(encoding="utf-8"))[language]
    assert sorted(words["units"]) == ["day", "month", "week", "year"]
    assert (len(words["weekdays"]), len(words["numbers"])) == (7, 10)
    assert {0, 1, 2} <= set(words["days"].values())


@pytest.mark.parametrize(
    "question",
    [
        "Welche drei Katzen habe ich, und wie alt sind die zwei kleinen?",
        "¿Cuántos gatos tengo y qué comen los dos mayores?",
        "Was war der letzte Tag auf der Hütte?",
        "Quanti fratelli ha Giordano, due o tre?",
        "Kızımın adı ne ve kaç yaşında?",
        # Nor is the last word of a number the whole of it.
        "二十天前我说了什么？",
        "이십일 전에 뭐라고 했지?",
    ],
)
def test_numbers_are_no_dates(question):
    assert read_time(question, NOW).periods == ()


def test_questions_in_english_are_read_by_the_rules_of_english():
    assert read_time("What did I say the Saturday before last?", NOW).periods


@given(st.text())
def test_any_text_can_be_read(text):
    read_time(text, NOW)
