"""Titles and wings of talk in languages other than English."""

from __future__ import annotations

import pytest

from language.other_languages import clauses, joined, noun_phrases
from tests.language.conversations import asked, between, read


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
        ("Ich habe den alten Kasten und die Uhr.", "de", ["Kasten"]),
        ("Der Teig für das Brot ist fertig.", "de", ["Teig für das Brot", "Teig", "Brot"]),
        ("Perdí el recibo de luz ayer.", "es", ["recibo de luz", "recibo"]),
        ("Busco una bicicleta usada.", "es", ["bicicleta usada"]),
        ("Il faut l'adresse de la gare.", "fr", ["adresse de la gare", "adresse", "gare"]),
        ("表町の将棋サロンに行った。", "ja", ["表町の将棋サロン"]),
        ("这是外婆的字，叫「晚市」。", "zh", ["外婆的字", "晚市"]),
        ("우리 동네 도서관에서 책을 읽었다.", "ko", ["동네 도서관"]),
        ("Kupiłem nowy rower.", "pl", []),
    ],
)
def test_noun_phrases_of_other_languages(text, language, found):
    assert list(dict.fromkeys(noun_phrases(text, language))) == found


@pytest.mark.parametrize(
    ("text", "language", "found"),
    [
        ("Kupiłem nowy rower, a stary sprzedam.", "pl", ["Kupiłem nowy rower", "stary sprzedam"]),
        ("Мы сдаём на шторы (новые).", "ru", ["сдаём на шторы"]),
        ("怎么做红烧肉？需要多长时间？", "zh", ["做红烧肉", "需要多长时间"]),
    ],
)
def test_short_clauses_stand_in_for_noun_phrases(text, language, found):
    assert list(clauses(text, language)) == found


def test_two_things_are_joined_by_the_languages_own_word():
    assert joined("Brot", "Uhr", "de") == "Brot und Uhr"
    assert joined("面", "字", "zh") == "面和字"
    assert joined("kenyér", "óra", "hu") == "kenyér, óra"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Сдаём на новые шторы для класса.", "Шторы были в прошлом году, опять новые шторы?"),
        ("내일 도서관에서 책을 읽을 거야.", "도서관 몇 시에 닫아? 도서관은 멀어."),
        ("今天去了图书馆，人很多。", "图书馆几点关门？我喜欢图书馆。"),
    ],
)
def test_people_who_write_no_english_get_a_title_in_their_words_that_is_not_cut(first, second):
    title = read(between("Ann", "Bo", first, second)).title
    assert " and " not in title
    assert title.lower() in f"{first} {second}".lower()
    assert any(word in title.lower() for word in ("шторы", "도서관", "图书馆"))


def test_another_language_is_not_what_a_talk_is_about():
    window = asked(
        "Wie lange muss der Teig für das Brot gehen, damit es schön luftig wird und nicht reißt?",
        "Etwa zwei Stunden.",
        "Und wie heiß muss der Ofen sein, wenn ich zwei Brote auf einmal hineinschiebe?",
        "Sehr heiß, zweihundertvierzig Grad.",
    )
    assert read(window).wing.name not in ("Writing & language", "Software & computers")


def test_portuguese_is_not_read_as_english_for_its_small_words():
    window = asked(
        "Tô fazendo libras aos sábados, por causa do seu Otávio do sessenta e um.",
        "Quantas aulas já foram?",
        "Seis. A professora é surda e me dá bronca com a sobrancelha.",
        "E como vai a turma?",
    )
    assert not read(window).title.endswith(" e")
