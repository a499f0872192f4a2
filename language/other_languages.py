"""Other languages than English: whether a message only asks, and its noun phrases.

A question mark shows a question in any language. Where it is missing, the words that open questions
do, of which each language has a short table here; few messages are that short and open so.

Noun phrases are of languages that have articles, and of Japanese. They are found by their
surroundings, without word lists: what follows an article, up to the next function word; in German
up to the noun, which has a capital; in Japanese a run of Chinese characters and katakana.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from language.analyzer import function_words

# Unmarked questions have at most so many words, or characters in a script without spaces.
_MOST_WORDS, _MOST_CHARS = 12, 30
# A sentence or clause of so many words states nothing: "Guten Morgen!", "Hola, ¿dónde …".
_IDLE_WORDS, _IDLE_CHARS = 2, 5

_SENTENCE = re.compile(r"(?<=[.!?؟])\s+|(?<=[。！？])\s*|\n+")
_CLAUSE = re.compile(r"\s*[,;:،、，；：–—…]\s*|\s+-\s+|\s*¿")
_MARKED = re.compile(r"[?？؟]['\"”»)\s]*$")
_UNSPACED = re.compile("[぀-ヿ㐀-鿿豈-﫿]")

# What opens an unmarked question, or shows one anywhere where it need not open.
_OPENS = {
    "de": r"(?:und |aber |also )?(?:wo|wohin|woher|wer|wen|wem|wessen|was|wann|warum|wieso|weshalb"
    r"|wie|wie ?viele?|(?:in|an|auf|mit|bei|für|zu|von|um|seit|aus|nach) (?:wem|wen|was|wie)"
    r"|(?:\w+ )?welche[rsnm]?)\b(?! ich| wir| du| ihr| für ein| schön| schade| gesagt| immer| auch"
    r" immer| oben| üblich| gewohnt| de[rmn] auch)"
    r"|(?:sage?|nenne?|zeige?) mir\b|erinnere? mich (?:an|wo|wer|was|wann|wie)\b",
    "es": r"(?:y |pero )?(?:(?:a|de|en|con|por|para) )?(?:dónde|adónde|quién(?:es)?|qué|cuál(?:es)?"
    r"|cuánt[oa]s?|cuándo|cómo)\b(?! bonit| bien| pena| lástima)"
    r"|(?:donde|quien|cual|cuanto|como)(?: \S+){1,3}$|(?:dime|recuérdame|muéstrame)\b(?! que)",
    "fr": r"(?:et |mais |alors )?(?:(?:à|de|dans|avec|chez|pour|sur|en) )?(?:où(?! j['’]| je| nous)"
    r"|qui|quel(?:le)?s?|combien|comment|pourquoi|qu['’]est|qu['’]ai|que (?:suis|ai|dois|fais)"
    r"|quand (?:est|ai|suis|dois|part|arrive|commence)|c['’]est (?:quoi|qui|où|quand)|est-ce"
    r"|ai-je|suis-je)\b|(?:dis|rappelle|montre)-moi\b(?! de| d['’])",
    "pt": r"(?:e |mas )?(?:(?:a|de|em|com|por|para) )?(?:onde(?! eu| moro| vivo| trabalho)"
    r"|quem|qual|quais"
    r"|quant[oa]s?|quando (?:é|foi|tenho|será|parte|começa)|como (?:se chama|é|está)|o que"
    r"|que (?:horas?|dia|cor|carro|marca)|porque é que)\b|(?:diz|lembra|mostra)-me\b(?! de| que)",
    "it": r"(?:e |ma )?(?:(?:a|di|in|con|per|da|su) )?(?:dove(?! vivo| abito| lavoro| sto)"
    r"|chi(?!.* non )|qual[ei]?"
    r"|quant[oaie]|quando (?:è|ho|sarà|parte|arriva|comincia)|come (?:si chiam\w+|è)|cosa|perché"
    r"|che (?:cosa|ore|ora|giorno|colore|macchina|lavoro|auto))\b(?! bell| buon)"
    r"|(?:dimmi|ricordami|mostrami)\b(?! di| che)",
    "nl": r"(?:en |maar )?(?:(?:in|op|met|van|voor|aan|bij|om) )?(?:waar|wie|wat|wanneer|welke?"
    r"|hoe|hoeveel|waarom)\b(?! ik| wij| een| leuk| mooi| jammer| fijn| lief)"
    r"|(?:zeg|vertel|toon) (?:me|mij)\b|herinner me aan\b",
    "pl": r"(?:a |i |ale )?(?:(?:w|na|z|o|od|do|po|dla|przez) )?(?:gdzie|kto|kogo|komu|kim|czyj\w*"
    r"|co(?! prawda| rok| tydzień| dzień| miesiąc| do | za )|czym|kiedy (?:mam|jest|był[ao]?"
    r"|będzie)|dlaczego|czemu|ile|jak (?:się|ma|nazyw|brzmi)\w*|jaki\w*|któr\w+|czy)\b"
    r"|(?:powiedz|przypomnij|pokaż) mi\b(?! żeby)",
    "ru": r"(?:а |и )?(?:(?:в|на|с|о|об|у|от|до|из|за|для|во|со|к) )?(?:где|куда|откуда|кто|кого"
    r"|кому|кем|ком|что(?! касается)|чем|какой|какая|какое|какие|какого|каком|какую|какой|почему"
    r"|зачем|сколько|че[йья]|чьё|когда (?:у меня|мо\w+|день|нач|встреч|приез|прилет)\w*"
    r"|как (?:зовут|называ|мо)\w*)\b|(?:скажи|напомни|покажи) (?:мне )?(?:где|кто|что|как|мо)",
    "ar": r"(?:و)?(?:أين|اين|متى|كيف|كم|ماذا|لماذا|هل|أي|اي|أية|لمن|من (?:هو|هي|الذي|اشترى)"
    r"|ما (?:اسم|هو|هي|لون|رقم|عنوان|تاريخ|موعد|نوع|مقاس|الذي|سبب)\S*)"
    r" \S|(?:قل لي|ذكرني|أخبرني) (?:أين|متى|ما|من|كم|ب)",
    "tr": r".*\b(?:nerede|nerde|nereye|nereden|kim|kimin|kime|kimde|hangi|kaç|kaçta|nasıl|ne zaman"
    r"|ne kadar|neden|niçin|nedir|neydi|neyim)\b(?!.*(?:bilmiyorum|olursa|olsa))|.*\bne$",
    "hi": r".*(?:कहाँ|कहां|कब|कौन|किस|क्या|कैसे|कितन|क्यों)(?!.*(?:पता नहीं|जब))",
    "zh": r"(?!.*(?:没有?什么|[都也]|不知道|好几|任何)).*(?:什么|哪[里儿个些家天]|谁|多少"
    r"|多大|几[点岁号月]"
    r"|怎么|为什么|吗$)|(?:告诉我|提醒我).*(?:什么|哪|谁|多少|几|名字)",
    "ja": r"(?!.*(?:[何どい][かつ]?(?:も|でも)|とか$|どこか|いつか|誰か|何か)).*(?:何|なに"
    r"|なん|どこ|いつ"
    r"|誰|だれ|どの|どれ|どんな|いくら|いくつ|なぜ|どう|どちら|どっち).*(?:か|っけ|の|かな|だ)$"
    r"|.*(?:ます|です|でした|ました)か$|.*(?:教えて|おしえて)(?:ください)?$",
    "ko": r".*(?:어디|뭐|무엇|무슨|언제|누구|누가|어느|어떤|몇|얼마|왜|어떻게)(?!나|든|인가)"
    r".*(?:까|니|나요|가요|죠|냐|어|야|요|지)$|.*(?:알려|말해) ?(?:줘|주세요)$",
}
# Words that ask, anywhere in a clause: whether it is the question or stands beside it.
_ASKING = re.compile(
    r"\b(?:wo|wohin|woher|wer|wen|wem|was|wann|warum|wie|wieviele?|welche[rsnm]?|weißt|kannst"
    r"|dónde|quién|qué|cuál|cuánt[oa]s?|cuándo|cómo|où|qui|quel(?:le)?s?|combien|comment|pourquoi"
    r"|quand|est-ce|onde|quem|qual|quais|quant[oa]s?|quando|o que|dove|chi|quale|cosa|come|che"
    r"|waar|wat|wanneer|welke?|hoe|weet|gdzie|kto|co|kiedy|ile|jak|jaki\w*|któr\w+|czy"
    r"|nerede|kim|hangi|kaç|nasıl|где|кто|что|когда|как\w*|сколько|почему|куда)\b"
    r"|^(?:sag|nenn|zeig|erinner)\w* mi|^(?:dime|dis-moi|dimmi|zeg|powiedz|скажи|напомни)\b"
    r"|أين|متى|كيف|هل|ماذا|कहाँ|कहां|कब|कौन|किस|क्या|कैसे|कितन|什么|哪|谁|多少|怎么|吗"
    r"|何|どこ|いつ|誰|どの|どんな|어디|뭐|무엇|언제|누구|몇",
    re.IGNORECASE,
)
# What a clause opens with that states something of its author, or why they ask.
_TELLS = re.compile(
    r"(?:(?:und |aber |y |pero |et |mais |e |ma |mas |en |maar |a |i |но |и )?"
    r"(?:ich|wir|yo|soy|tengo|estoy|vivo|je|j['’]|nous|eu|sou|tenho|io|sono|ho|ik|wij|ja|jestem|mam"
    r"|ben|я|мы|у меня|мне)\b|j['’]|weil\b|denn\b|da ich\b|porque\b|parce\b|perché\b|omdat\b|want\b"
    r"|ponieważ\b|bo\b|çünkü\b|потому\b|أنا|لأن|मैं|मुझे|क्योंकि|我|因为|私|僕|俺|저는|나는)",
    re.IGNORECASE,
)
_TELLS_WITHIN = re.compile(
    r"\b(?:weil|denn|porque|parce qu|perché ho|perché sono|omdat|ponieważ|çünkü|потому)\b"
    r"|لأن|क्योंकि"
    r"|因为|から、",
    re.IGNORECASE,
)
_UNMARKED_END = re.compile(r"[.。!！\s]+$")


def only_asks_in(text: str, languages: tuple[str, ...]) -> bool:
    """Whether each sentence only asks; "Ich bin müde, wo ist mein Bett?" states something.

    Args:
        languages: That it may be written in, as ISO 639-1.
    """
    asked = False
    for sentence in filter(None, map(str.strip, _SENTENCE.split(text))):
        if _asks(sentence, languages):
            if _tells_beside(sentence):
                return False
            asked = True
        elif not _is_idle(sentence):
            return False
    return asked


def _asks(sentence: str, languages: tuple[str, ...]) -> bool:
    if _MARKED.search(sentence):
        return True
    plain = _UNMARKED_END.sub("", sentence)
    if len(plain.split()) > _MOST_WORDS or (_UNSPACED.search(plain) and len(plain) > _MOST_CHARS):
        return False
    return any(_opening(language).match(plain) for language in languages if language in _OPENS)


@cache
def _opening(language: str) -> re.Pattern[str]:
    return re.compile(_OPENS[language], re.IGNORECASE)


def _tells_beside(sentence: str) -> bool:
    if _TELLS_WITHIN.search(sentence):
        return True
    first, *others = [clause for clause in _CLAUSE.split(sentence) if clause]
    if any(map(_TELLS.match, others)):
        return True
    return bool(others) and not _ASKING.search(first) and not _is_idle(first)


def _is_idle(part: str) -> bool:
    if _UNSPACED.search(part):
        return len(part) <= _IDLE_CHARS
    return len(part.split()) <= _IDLE_WORDS


_ARTICLES = {
    "de": "der die das dem den des ein eine einen einem einer mein meine meinen meinem meiner unser"
    " unsere unseren unserem im am vom zum zur beim",
    "es": "el la los las un una unos unas mi mis tu su nuestro nuestra del al",
    "fr": "le la les un une mon ma mes ton ta notre nos du au",
    "it": "il lo la i gli le un uno una mio mia miei del della dello dei nel nella al alla",
    "pt": "o a os as um uma meu minha meus minhas do da no na ao",
    "nl": "de het een mijn ons onze",
}
_OF = {
    "es": "de del",
    "fr": "de du des d'",
    "it": "di del della dei delle da",
    "pt": "de do da dos das",
    "nl": "van",
}
_TOKEN = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*['’]?|[^\w\s]")
_JAPANESE = re.compile(r"[一-鿿々ァ-ヺー]{2,12}(?:の[一-鿿々ァ-ヺー]{2,8})?")
_MOST_WORDS_OF_ONE = 4
_LEAST_LETTERS = 4
READ_CHARS = 1000


def noun_phrases(text: str, language: str) -> Iterator[str]:
    """In the order of the text; none of a language that is not known here."""
    read = text[:READ_CHARS]
    if language == "ja":
        yield from _JAPANESE.findall(read)
    elif language in _ARTICLES:
        yield from _after_articles(read, language)


def _after_articles(text: str, language: str) -> Iterator[str]:
    tokens = list(_TOKEN.finditer(text))
    articles = frozenset(_ARTICLES[language].split())
    for at, token in enumerate(tokens):
        elided = language in ("fr", "it") and token.group().lower() in ("l'", "l’")
        if token.group().lower() in articles or elided:
            last = _end_of(tokens, at + 1, language)
            if last > at:
                phrase = text[tokens[at + 1].start() : tokens[last].end()]
                if len(phrase) >= _LEAST_LETTERS:
                    yield " ".join(phrase.split())


def _end_of(tokens: list[re.Match[str]], first: int, language: str) -> int:
    """Index of the phrase's last token; before `first` where there is none."""
    words = [token.group() for token in tokens[first : first + _MOST_WORDS_OF_ONE]]
    return first - 1 + (_german(words) if language == "de" else _with_of(words, language))


def _german(words: list[str]) -> int:
    """How many words the phrase has: adjectives, and the nouns that follow one another."""
    for count, word in enumerate(words, start=1):
        if word[:1].isupper():
            return count
        if not word.isalpha() or word.lower() in function_words("de"):
            break
    return 0


def _with_of(words: list[str], language: str) -> int:
    """A noun, and what it is of, without another article between: "recibo de luz"."""
    small = function_words(language)
    if not words or not words[0].isalpha() or words[0].lower() in small:
        return 0
    of = frozenset(_OF[language].split())
    articles = frozenset(_ARTICLES[language].split())
    if len(words) > 1 and words[1].lower().replace("’", "'") in of:
        at = 3 if len(words) > 3 and words[2].lower() in articles else 2
        if len(words) > at and words[at].isalpha() and words[at].lower() not in small:
            return at + 1
    return 1
