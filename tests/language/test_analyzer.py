from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from language.analyzer import MAX_TERM_LENGTH, STEMMERS, all_readings, analyze, analyze_question


def test_forms_of_a_word_are_one_term():
    assert len(analyze("battery batteries Battery's BATTERY")) == 1


def test_stopwords_do_not_count():
    assert analyze("It is what it is, and I don't know about that.") == analyze("know")


def test_counts_are_kept():
    assert analyze("wire, wire and Wire")["wire"] == 3


def test_numbers_and_codes_are_terms():
    assert set(analyze("12-AWG, 20Ah at 5:30")) == {"12", "awg", "20ah", "5", "30"}


def test_unspaced_scripts_are_read_in_pairs():
    assert set(analyze("電池の配線")) == {"電池", "池の", "の配", "配線"}


def test_wide_and_plain_letters_are_the_same():
    assert analyze("Ｌｉｓｂｏｎ") == analyze("Lisbon")


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("Die Schafe stehen auf den Wiesen hinter dem Hof.", "Welches Schaf fehlt auf der Wiese?"),
        ("Le regalé mis pinceles viejos a mi vecina.", "¿Qué pincel viejo le di al vecino?"),
        ("J'ai rangé mes outils dans l'armoire.", "Où est mon outil, dans quelle armoire ?"),
        ("Le barche degli zii restano nel porto.", "Di chi era la barca nel porto?"),
        ("Bisikletimi kardeşime verdim, artık onun bisikleti.", "Bisiklet kimde, kardeş mi aldı?"),
        ("Мы купили старую лодку и новые вёсла.", "Сколько стоила старая лодка?"),
        ("Moje kolana bolą po bieganiu.", "Które kolano mnie boli, lewe?"),
        ("وضعت الكتاب القديم في الصندوق الخشبي", "في أي صندوق كتابي القديم؟"),
    ],
)
def test_forms_of_a_word_are_one_term_in_its_language(said, asked):
    assert len(analyze(said).keys() & analyze_question(asked).keys()) >= 2


def test_function_words_of_the_language_do_not_count():
    assert set(analyze_question("Wie heißt denn eigentlich unsere neue Katze?")) == set(
        analyze_question("heißt eigentlich neue Katze")
    )


def test_an_elided_article_is_no_part_of_its_noun():
    assert "eau" in analyze("On a bu de l'eau et puis on est rentrés.")


def test_a_question_in_english_finds_the_names_in_another_language():
    said = analyze("Ieri ho incontrato Beatrice e suo marito Giordano al mercato.")
    assert {"beatric", "giordano"} <= said.keys() & all_readings("Who is Beatrice's Giordano?")


def test_a_question_in_another_language_finds_messages_in_english():
    said = analyze("The new bakery in Tampere sells cinnamon buns every morning.")
    readings = analyze_question("Was kostet das in der neuen Bakery in Tampere?")
    assert all(said.keys() & {term, *readings[term]} for term in ("bakery", "tamp"))


def test_a_compound_is_looked_up_by_its_parts_too():
    [*_, readings] = analyze_question("Was kommt denn alles in den Apfelkuchen?").values()
    assert {"apfel", "kuch"} <= set(readings)


def test_an_endless_word_has_no_parts():
    readings = analyze_question("Was ist das denn für ein " + "w" * 4000)
    assert sum(map(len, readings.values())) < 5


def test_a_question_in_english_has_one_reading_only():
    assert set(analyze_question("Which batteries did Nora's brother recommend?").values()) == {()}


@given(st.text(), st.sampled_from(sorted(STEMMERS)))
def test_any_text_has_terms_that_fit_their_column_in_any_language(text, language):
    assert all(0 < len(term) <= MAX_TERM_LENGTH for term in analyze(text, language))


@given(st.text())
def test_any_text_has_terms_that_fit_their_column(text):
    assert all(0 < len(term) <= MAX_TERM_LENGTH and "\0" not in term for term in analyze(text))
