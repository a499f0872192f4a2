"""Other languages than English: whether a message only asks, and its noun phrases.

A question mark shows a question in any language. Where it is missing, the words that open questions
do, of which each language has a short table here; few messages are that short and open so.

Noun phrases are of languages that have articles, and of Chinese, Japanese and Korean. They are
found by their surroundings, without word lists: what follows an article; in German what has a
capital; in Japanese a run of Chinese characters and katakana, in Chinese what lies between small
words, in Korean what a particle follows. Elsewhere short clauses have to do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache

from language.analyzer import UNSPACED, WORD, function_words
from language.english import stem

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


def _sets(of_languages: Mapping[str, str]) -> dict[str, frozenset[str]]:
    return {language: frozenset(some.split()) for language, some in of_languages.items()}


_ARTICLES = _sets(
    {
        "de": "der die das dem den des ein eine einen einem einer mein meine meinen meinem meiner"
        " unser unsere unseren unserem im am vom zum zur beim",
        "es": "el la los las un una unos unas mi mis tu su nuestro nuestra del al",
        "fr": "le la les un une mon ma mes ton ta notre nos du au",
        "it": "il lo la i gli le un uno una mio mia miei del della dello dei nel nella al alla",
        "pt": "o a os as um uma meu minha meus minhas do da no na ao",
        "nl": "de het een mijn ons onze",
    }
)
# What joins two nouns to one phrase.
_JOINTS = _sets(
    {
        "de": "für mit von vom zum zur aus im am ohne",
        "es": "de del para con en sin",
        "fr": "de du des d' d’ pour avec en au à",
        "it": "di del della dei delle da per con in",
        "pt": "de do da dos das para com em",
        "nl": "van voor met in",
    }
)
_AND = {
    "en": " and ", "de": " und ", "es": " y ", "fr": " et ", "it": " e ", "pt": " e ", "nl": " en ",
    "sv": " och ", "da": " og ", "no": " og ", "pl": " i ", "ru": " и ", "tr": " ve ", "hi": " और ",
    "zh": "和", "ja": "と", "ar": " و",
}  # fmt: skip
_TOKEN = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*['’]?|[^\w\s]")
_JAPANESE = re.compile(r"[一-鿿々ァ-ヺー]{2,12}(?:の[一-鿿々ァ-ヺー]{2,8})?")
# Between these lie words, though nothing shows where each ends.
_CHINESE_SMALL = (
    "我你您他她它们的了着过是在有这那和跟与就也都还又再才不没很太把被给吗呢吧啊呀嘛哦嗯什么怎个"
)
_WORD = rf"[^\W\d_a-zA-Z{_CHINESE_SMALL}]"
_CHINESE = re.compile(
    rf"(?<=[「《“])[^\W_][\w ]{{1,11}}(?=[」》”])"
    rf"|(?<!{_WORD}){_WORD}{{1,6}}的{_WORD}{{1,6}}(?!{_WORD})"
    rf"|(?<!{_WORD}){_WORD}{{2,6}}(?!{_WORD})"
)
# A noun and what shows that it is one; of a word of two syllables the last is seldom a particle.
_KOREAN = re.compile(
    r"((?:[가-힣A-Za-z]+ )?[가-힣A-Za-z]{2,}?)"
    r"(?:에서는?|에게|한테|까지|부터|으로|이랑|은|는|을|를|의|에|(?<=[가-힣]{2})[이가와과도만])(?![가-힣])"
)
_BRACKETS = re.compile(r"[()\[\]{}（）【】]")
_MOST_WORDS_OF_ONE = 4
_MOST_WORDS_OF_TWO = 5
_LEAST_LETTERS = 4
READ_CHARS = 1000
# A word of so many letters says enough alone. In most languages a word begins alike in all forms.
_LONG_WORD, _ROOT_CHARS = 9, 5
# A clause of so many words, or characters where no spaces are written, can name a conversation.
_CLAUSE_WORDS = range(2, 7)
_CLAUSE_CHARS = range(4, 15)


def noun_phrases(text: str, language: str) -> Iterator[str]:
    """In the order of the text; none of a language whose nouns nothing shows."""
    read = text[:READ_CHARS]
    if language == "ja":
        yield from _JAPANESE.findall(read)
    elif language == "zh":
        yield from _CHINESE.findall(read)
    elif language == "ko":
        yield from _KOREAN.findall(read)
    elif language in _ARTICLES:
        yield from _after_articles(read, language)


def clauses(text: str, language: str) -> Iterator[str]:
    """Short ones in the order of the text, without the small words at their ends."""
    small = function_words(language)
    for sentence in _SENTENCE.split(_BRACKETS.sub("\n", text[:READ_CHARS])):
        for clause in _CLAUSE.split(sentence):
            plain = clause.strip(" \t.!?。！？؟…\"'“”„«»()[]*#")
            if _UNSPACED.search(plain) and " " not in plain:
                plain = plain.strip(_CHINESE_SMALL) if language == "zh" else plain
                if len(plain) in _CLAUSE_CHARS:
                    yield plain
                continue
            words = plain.split()
            while words and words[0].lower() in small:
                del words[0]
            while words and words[-1].lower() in small:
                del words[-1]
            if len(words) in _CLAUSE_WORDS:
                yield " ".join(words)


def titles_in(text: str, language: str) -> Iterator[tuple[float, str, frozenset[str]]]:
    """What may name a conversation: noun phrases, or short clauses.

    Each with how likely its kind makes it, up to 1, and the roots of its words that carry meaning.
    """
    small = function_words(language)
    found = [(0.5 if " " in noun else 1.0, noun) for noun in noun_phrases(text, language)]
    # Where nouns are recognised, a clause is second choice.
    found += [(-0.4 if found else 0.2, clause) for clause in clauses(text, language)]
    for cue, phrase in dict.fromkeys(found):
        meaning = [word for word in WORD.findall(phrase.lower()) if word not in small]
        if meaning:
            yield cue, phrase, frozenset(roots(" ".join(meaning)))


def says_enough(phrase: str) -> bool:
    """Whether it is more than a word that may have been said in passing."""
    least = _CLAUSE_CHARS.start if UNSPACED.search(phrase) else _LONG_WORD
    return len(phrase) >= least or any(sign in phrase for sign in " の的")


def roots(text: str) -> Iterator[str]:
    """English words by their stem, others by their beginning, unspaced ones in pairs of signs."""
    for word in re.findall(r"[^\W_]+", text.lower()):
        if word.isascii():
            yield stem(word)
        elif UNSPACED.search(word):
            yield from (word[at : at + 2] for at in range(max(len(word) - 1, 1)))
        else:
            yield word[:_ROOT_CHARS]


def joined(one: str, other: str, language: str) -> str:
    """Two titles as one, by the language's own "and"; by a comma if it is not known here."""
    return f"{one}{_AND.get(language, ', ')}{other}"


def _after_articles(text: str, language: str) -> Iterator[str]:
    tokens = list(_TOKEN.finditer(text))
    for at in range(len(tokens)):
        if not _shows_noun(tokens, at, language):
            continue
        first, last = _noun(tokens, at + 1, language)
        if last < first:
            continue
        for end in dict.fromkeys((_with_joint(tokens, first, last, language), last)):
            phrase = " ".join(text[tokens[first].start() : tokens[end].end()].split())
            if len(phrase) >= _LEAST_LETTERS:
                yield phrase


def _shows_noun(tokens: list[re.Match[str]], at: int, language: str) -> bool:
    """Whether a noun may follow: after an article; in German its capital tells, anywhere."""
    word = tokens[at].group().lower()
    if word in _ARTICLES[language]:
        return True
    if language in ("fr", "it") and word in ("l'", "l’"):
        return True
    return language == "de" and word.isalpha() and word == tokens[at].group()


def _noun(tokens: list[re.Match[str]], first: int, language: str) -> tuple[int, int]:
    """The first and the last token of the noun that may begin there; no last one if none does."""
    small = function_words(language)
    words = [token.group() for token in tokens[first : first + _MOST_WORDS_OF_ONE]]
    if language != "de":
        if not words or not words[0].isalpha() or words[0].lower() in small:
            return first, first - 1
        agrees = len(words) > 1 and words[1].isalpha() and _agree(words[0], words[1], language)
        return first, first + (agrees and words[1].lower() not in small)
    for count, word in enumerate(words):
        if not word.replace("-", "").isalpha() or word.lower() in small:
            break
        if word[0].isupper():
            # Without its adjectives, whose endings the article asked for.
            following = words[count + 1 : count + 2]
            return first + count, first + count + bool(following and following[0][0].isupper())
    return first, first - 1


def _agree(noun: str, adjective: str, language: str) -> bool:
    """ "Bicicleta usada", "coches rojos": what follows says what kind it is."""
    if language not in ("es", "it", "pt"):
        return False
    ending = re.compile(r"[aeo]s?$")
    one, other = ending.search(noun), ending.search(adjective)
    return bool(one and other and one.group() == other.group())


def _with_joint(tokens: list[re.Match[str]], first: int, last: int, language: str) -> int:
    """The last token with what the noun is of, or for: "recibo de luz"; else `last`."""
    at = last + 1
    if at >= len(tokens) or tokens[at].group().lower() not in _JOINTS[language]:
        return last
    articles = _ARTICLES[language]
    if at + 1 < len(tokens) and tokens[at + 1].group().lower() in articles | {"l'", "l’"}:
        at += 1
    other, end = _noun(tokens, at + 1, language)
    fits = end >= other == at + 1 and end - first < _MOST_WORDS_OF_TWO
    return end if fits else last
