"""How much a message states a lasting wish: a taste, a habit, a limit, a standing instruction."""

from __future__ import annotations

import re
from collections.abc import Iterator

# What follows "I", by strength: how surely it says something lasting of the speaker.
_ABOUT_ME: tuple[tuple[float, str], ...] = (
    (0.9, r" (?:prefer|value|favou?r|opt for)\b"),
    (0.9, r"(?:'m| am) (?:allergic|intolerant|lactose|gluten|diabetic|colou?r ?blind|dyslexic|"
          r"left handed|celiac|coeliac)"),
    (0.9, r"(?:'m| am) (?:a |an )?(?:strict |committed |lifelong )?(?:vegan|vegetarian|pescatarian|"
          r"teetotal|night owl|morning person|early riser|minimalist|introvert|extrovert)"),
    (0.9, r" have (?:a |an )?(?:\w+ ){0,2}?(?:allergy|allergies|intolerance)\b"),
    (0.9, r" want you to (?:always|never)\b"),
    (0.8, r" (?:don't|do not|never|can't|cannot) (?:eat|drink|stand|bear|tolerate|smoke|drive|"
          r"use|wear|like|enjoy|care for|want you to|want any|trust|celebrate)\b"),
    (0.75, r"(?:'m| am) (?:not )?(?:a |an )?(?:huge |big |massive |great |real |total )?"
           r"(?:fan of|lover of|sucker for)\b"),
    (0.7, r" (?:hate|dislike|detest|loathe|despise|adore|avoid|refuse to|steer clear of|"
          r"stick to|swear by|stay away from)\b"),
    (0.7, r"(?:'d| would) (?:much |far |always )?(?:rather|prefer)\b"),
    (0.65, r" (?:love|like|enjoy)\b(?! (?:you|it|this|that|these|those|how|what|where|when|your|"
           r"to think|the (?:idea|suggestions?|sound|look|thought|way|recipe|list|options?|plan|"
           r"concept|recommendations?|tips?|points?|name|part))\b)(?! (?:all )?(?:of )?(?:the|your|"
           r"these|those|that)\b[^.!?]{0,20}\b(?:ideas?|suggestions?|recommendations?|tips|"
           r"options)\b)"),
    (0.6, r"(?:'ve| have) (?:recently |really |lately )?(?:been|gotten|got|become|developed) "
          r"(?:really |pretty |very |quite |so )?(?:into|enjoying|loving|obsessed|hooked|fond|"
          r"a taste|keen|avoiding|cutting)\b"),
    (0.6, r"(?:'m| am) (?:really |quite |very |pretty |so |super |currently |mostly |not )?"
          r"(?:into|obsessed with|passionate about|keen on|fond of|partial to|picky|fussy|"
          r"sensitive to|careful about|particular about|more of an?|afraid of|scared of|"
          r"comfortable with|drawn to)\b"),
    (0.25, r"(?:'m| am) (?:really |very |also )?interested in\b"),
    (0.55, r" (?:almost )?(?:always|usually|normally|typically|generally|mostly|only|rarely|seldom|"
           r"tend to) (?!thought|heard|knew|just|have to|need|one|if|had|got|saw|found|two|"
           r"three|\w+ed\b)\w+"),
    (0.55, r" never (?!heard|seen|been|thought|knew|had|got|did|really|said|meant|\w+ed\b)\w+"),
    (0.5, r"(?:'m| am) (?:trying|working) (?:hard )?to (?:cut|reduce|avoid|eat|save|"
          r"keep(?! track| up)|stay|limit|stick|quit|live|lose|be more|spend less)\b"),
    (0.5, r" (?:try|like|prefer|need|want) to (?:avoid|keep (?:it|things|my)|stick|stay|limit)\b"),
    (0.4, r" (?:find (?:it|that|them)|learn|work|think|sleep|focus) (?:much |far |a lot |\w+ )?"
          r"(?:easier|better|best|harder|hard|difficult)\b"),
)  # fmt: skip
# What says it without "I".
_OTHERWISE: tuple[tuple[float, str], ...] = (
    (0.95, r"(?:please |you (?:should|must) |make sure (?:to|you) |"
           r"be sure to |remember to )(?:always|never)\b(?! mind)"),
    (0.95, r"(?:from now on|going forward,|from here on|in (?:the )?future,? (?:please|always|"
           r"never|don't|keep|use|i)|(?:when|whenever|every time|each time|any time) (?:i ask|"
           r"you (?:answer|reply|write|suggest|recommend|explain|give)))"),
    (0.85, r"keep (?:all )?(?:your|the|my) (?:answers?|repl(?:y|ies)|responses?|explanations?|"
           r"messages?|emails?|code|tone|suggestions?)\b"),
    (0.85, r"(?:keep in mind|bear in mind|remember|note|don't forget|be aware),? that "
           r"(?:i|my|we)\b"),
    (0.8, r"my (?:(?:all time |absolute |personal |current )?favou?rite (?!part of (?:the|this|"
          r"your))"
          r"[^.?!,]{0,50}\b(?:is|are|has|have|was always|would)|(?:strong |personal |general )?"
          r"preferences? (?:is|are|for|would)|rule is|style is|pet peeve)\b"),
    (0.6, r"(?<!what\s)(?<!who\s)(?<!which\s)(?:is|are)(?: one of)? my (?:all time |absolute |"
          r"personal )?favou?rites?\b"),
    (0.7, r"(?:please |just )?(?:call|address) me (?!back|when|if|at|on|in|later|tomorrow|a )\w+"),
    (0.7, r"please (?:don't|do not|avoid|stop|refrain from|stick to|keep (?:it|things) )"),
    (0.6, r"(?:matters (?:a lot |most )?|(?:is|are) (?:really |very |so )?important|works? "
          r"(?:best|better|well)|suits?) (?:to |for )?me\b"),
    (0.6, r"(?:doesn't|does not|don't|do not) (?:agree with|work for|appeal to|suit) me\b"),
    (0.35, r"as an? (?:[\w\-]+ ){1,5}?(?:user|owner|fan|lover|beginner|vegetarian|vegan|student|"
           r"runner|parent|mother|father|mom|dad|developer|teacher|enthusiast|artist|musician|comedian)\b"),
)  # fmt: skip
# The same at the start of a sentence only: an order, not a description.
_ORDERS: tuple[tuple[float, str], ...] = (
    (0.95, r"(?:always|never) (?!mind|heard|been|seen|thought|tried|had|knew|really|a |the |on|"
           r"in|wanted)\w+"),
    (0.8, r"(?:don't|do not|avoid|stop) (?:ever |using|giving|adding|suggest|recommend|include|use|"
          r"call|give me|send|write|add|explain|apologi)\w*"),
    (0.8, r"prefer \w+"),
    (0.8, r"(?:use|write|answer|reply|respond|speak|talk) (?:\w+ ){0,4}(?:always|from now on|"
          r"unless i|whenever|every time)\b"),
)  # fmt: skip

_ADVERB = (
    r"(?: (?:really|absolutely|also|just|do|strongly|personally|much|truly|honestly|still|"
    r"definitely|especially|particularly|actually|generally|always|simply|tend to)){0,2}?"
)
# Cues are looked for at these words only: that is what makes reading a message cheap.
_OPENING_WORD = re.compile(
    r"(?:i|my|always|never|please|you|make|be|remember|from|going|in|when|whenever|every|each|any|"
    r"keep|bear|note|don't|do|does|doesn't|is|are|just|call|address|matters?|works?|suits?|as|"
    r"avoid|stop|prefer|use|write|answer|reply|respond|speak|talk)(?!\w)"
)


def _any_of(rows: tuple[tuple[float, str], ...], first: int, before: str = "") -> re.Pattern[str]:
    """The rows as one expression, the group of row n named `cue{first + n}`."""
    cues = (f"(?P<cue{first + row}>{pattern})" for row, (_, pattern) in enumerate(rows))
    return re.compile((before + "(?:" + "|".join(cues) + ")").replace(" ", r"[\s\-]+"))


_STRENGTHS = [strength for strength, _ in (*_ABOUT_ME, *_OTHERWISE, *_ORDERS)]
_CUE_ABOUT_ME = _any_of(_ABOUT_ME, 0, _ADVERB)
_CUE_OTHERWISE = _any_of(_OTHERWISE, len(_ABOUT_ME))
_CUE_ORDER = _any_of(_ORDERS, len(_ABOUT_ME) + len(_OTHERWISE))
# Just before a cue these make it a question, a condition or somebody else's words.
_NOT_A_STATEMENT = re.compile(
    r"(?i)\b(?:do|does|did|should|would|could|can|may|might|must|will|shall|am|if|whether|unless|"
    r"suppose|wish|hope|i|you|we|why|how|says?|said|thinks?|thought|told me|tells me|claims?|"
    r"ask(?:s|ed)? (?:me )?if|would you|do you|like how)(?:\s+that)?\s+$"
)
_NOT_MINE = re.compile(
    r"```.*?(?:```|\Z)|`[^`\n]{1,200}`|\"[^\"\n]{1,400}\"|“[^”\n]{1,400}”|^\s*>[^\n]*$",
    re.DOTALL | re.MULTILINE,
)
_SENTENCE_ENDS = ("", ".", "!", "?", ":", ";", "\n")
_HEAD, _TAIL = 700, 500  # Characters: a person's own words frame what they paste.


def preference_strength(text: str, role: str) -> float:
    """How surely `text` states a lasting wish, taste, limit or order of its speaker, 0 to 1.

    Only people have wishes: 0 for any role but "user". Cues add up as independent hints do.
    Quotations and code are not the speaker's; of a long text the first and last lines are read.
    """
    if role != "user":
        return 0.0
    doubt = 1.0
    for cue in set(_cues(_own_words(text))):
        doubt *= 1.0 - _STRENGTHS[cue]
    return round(1.0 - doubt, 3)


def _own_words(text: str) -> str:
    if len(text) > _HEAD + _TAIL:
        text = f"{text[:_HEAD]}\n{text[-_TAIL:]}"
    text = text.lower().replace("’", "'")
    return _NOT_MINE.sub(" ", text) if any(mark in text for mark in '"“`>') else text


def _cues(said: str) -> Iterator[int]:
    """The rows of the tables that lower-case `said` shows, in its order."""
    for word in _OPENING_WORD.finditer(said):
        start = word.start()
        if start and (said[start - 1].isalnum() or said[start - 1] in "'_"):
            continue
        cue = _cue_at(said, word)
        if cue and not _NOT_A_STATEMENT.search(said, max(0, start - 24), start):
            yield int(str(cue.lastgroup).removeprefix("cue"))


def _cue_at(said: str, word: re.Match[str]) -> re.Match[str] | None:
    if word[0] == "i":
        return _CUE_ABOUT_ME.match(said, word.end())
    if cue := _CUE_OTHERWISE.match(said, word.start()):
        return cue
    before = said[max(0, word.start() - 3) : word.start()].rstrip(" \t")
    return _CUE_ORDER.match(said, word.start()) if before[-1:] in _SENTENCE_ENDS else None
