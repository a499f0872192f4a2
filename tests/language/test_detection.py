"""Which language a message is in: in sentences as people type them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from language.analyzer import ENGLISH, function_words, language_of

SENTENCES = {
    "ar": "ذهبت إلى السوق واشتريت خبزا طازجا",
    "cs": "Včera jsme byli na houbách a nic jsme nenašli.",
    "de": "gestern wieder im regen nach hause geradelt, so ein mist",
    "el": "Ο γάτος μου κοιμάται όλη μέρα.",
    "en": "just got back from the market, no bread left",
    "es": "ayer se me olvidó comprar pan otra vez",
    "fa": "دیروز به بازار رفتم و نان تازه خریدم",
    "fr": "hier on a encore raté le dernier bus",
    "hi": "कल मैं बाज़ार गया और ताज़ी रोटी लाया",
    "it": "ieri abbiamo perso di nuovo l'ultimo treno",
    "ja": "昨日パンを買うのを忘れた",
    "ko": "어제 또 빵 사는 걸 잊었어요",
    "nl": "gisteren weer de laatste bus gemist",
    "pl": "wczoraj znowu zapomniałem kupić chleba",
    "pt": "ontem esqueci de comprar pão outra vez",
    "ru": "вчера опять забыл купить хлеб",
    "sv": "igår glömde jag köpa bröd igen",
    "tr": "dün yine ekmek almayı unuttum",
    "uk": "вчора я знову забув купити хліба, а ти?",
    "zh": "昨天又忘记买面包了",
}


@pytest.mark.parametrize("language", SENTENCES)
def test_an_everyday_sentence_shows_its_language(language):
    assert language_of(SENTENCES[language]) == language


@pytest.mark.parametrize("text", ["", "???", "Nora", "ok", "42", "🌸", "x = [1, 2]"])
def test_what_has_no_language_is_read_as_english(text):
    assert language_of(text) == ENGLISH


def test_a_borrowed_word_does_not_change_the_language():
    assert language_of("We had tiramisù and a café crème in the piazza.") == ENGLISH


@given(st.text())
def test_any_text_has_a_language(text):
    assert len(language_of(text)) == 2


@pytest.mark.parametrize("language", ["de", "en", "es", "fr", "hi", "it", "pt", "ru", "tr"])
def test_function_words_are_lower_case_words(language):
    words = function_words(language)
    assert len(words) > 80
    assert all(word == word.lower() and " " not in word for word in words)
