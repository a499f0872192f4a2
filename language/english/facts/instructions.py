"""Standing instructions to the assistant: "always answer in German"."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from language.english.facts.people import Company
from language.english.facts.sentences import BLOT, Sentence, spelt_out
from language.english.facts.vocabulary import LANGUAGE
from language.english.grammatical_person import third
from language.facts import USER, Candidate, Words

_STANDING = re.compile(
    r"(?i)\A(?:(?:ok|okay|also|and|but|please|pls|so|btw|thanks|from now on|in (?:the )?future"
    r"|going forward|for the future|in general|note|remember)[,:]?\s+)*(?:you should "
    r"|you must )?(?:please\s+)?(?P<what>(?:always|never)\s+(?P<verb>[a-z]+)\b.{3,120})"
)
_WHEN_YOU = (
    r"when(?:ever)? you (?:write|talk|speak|reply|answer|explain|code)(?: (?:things|code"
    r"|something))?(?: (?:for|to) me)?"
)
_FROM_NOW_ON = re.compile(
    r"(?i)\A(?:(?:ok|okay|also|and|but|please|pls|so)[,:]?\s+)*(?:"
    r"(?:from now on|going forward|in (?:the )?future|for all (?:future )?(?:answers"
    rf"|replies|conversations)|{_WHEN_YOU})[,:]?\s+(?:please\s+)?(?P<first>[a-z]+\b.{{3,110}})"
    r"|(?:please\s+)?(?P<then>(?:answer|reply|respond|write|use|speak|address|talk|give"
    r"|keep|call|explain|format|avoid|skip|do not|don't|stop|include|add|show|convert"
    r"|spell)\b.{3,100}?),?\s+(?:(?:please,? )?always|from now on|going forward|in (?:the )?future"
    rf"|every time|in all (?:your )?(?:answers|replies)|{_WHEN_YOU}))"
)
_KEEP_SHORT = re.compile(
    r"(?i)\b(?:please|pls),? (?P<what>keep (?:it|(?:your |the |all )?(?:answers|replies"
    r"|responses)) (?:short|brief|concise|simple|terse))\b"
)
_SO = r"(?i)\A(?:(?:ok|okay|oh|and|also|but|so|btw|hey|one thing|please|pls|just|ps|p\.s\.),? )*"
_FORMATS = (
    r"(?:emojis?|bullet points?|bullets|exclamation (?:marks?|points)|markdown|headings|jargon"
    r"|hashtags|slang|acronyms|disclaimers|semicolons|tabs|(?:code )?comments|em[- ]dashes"
    r"|contractions|footnotes|puns|clich[eé]s|swear ?words|italics|tables)"
)
# Things of which somebody wants none in any answer; for one answer they need not say "ever".
_LASTING = (
    r"(?:,? (?:please|pls|for me|ever|at all|any ?more|again|on my behalf"
    r"|in (?:your |the )?(?:answers|replies|responses)))+"
)
_A_FORMAT = re.compile(_FORMATS, re.IGNORECASE)
_NONE_OF = re.compile(
    rf"{_SO}(?:(?P<what>no (?:more )?(?:[a-z]+ )?(?:{_FORMATS}|tables|spelling|preamble|small talk"
    rf"|apologies|abbreviations|flattery)){_LASTING}"
    rf"|never (?P<never>{_FORMATS})(?: in [\w+#]+)?(?=\Z|[;.]))"
    r"(?=\Z|[,;:.(])"
)
_NOT_IN_ANY = re.compile(
    rf"{_SO}(?P<what>(?:do not|stop) (?:use|using|add|adding|put|putting|include|including|write"
    rf"|writing) (?:me )?(?:any |so many |in )?{_FORMATS})"
    r"(?=\Z|[,;:.(]| (?:please|pls|(?:for|with|to) me|in (?:your |the )?(?:answers|replies)))"
)
_FINE_AGAIN = re.compile(
    rf"{_SO}(?:(?P<what>{_FORMATS}) are (?:fine|ok|okay)(?: again| now)+|(?P<long>(?:long(?:er)?"
    r"|detailed) (?:answers|replies|responses)) are (?:fine|ok|okay)(?: again| now)*)\Z"
)
_NOT_EVER = re.compile(
    rf"{_SO}(?P<what>do not (?!call )(?P<verb>[a-z]+) "
    r"(?!(?:that|this|it)\b).{3,90}?(?: (?:anything|everything|whatever) you (?:tell|say to|write"
    r"|write to|send|give) me| (?:ever|ever again|any ?more)))(?=\Z|[,;:.(])|\A(?:(?:and|also|but"
    r"|so|please|pls|just),? )*(?P<never>do not (?:finish|interrupt|praise|lecture|flatter"
    r"|compliment|congratulate|patroni[sz]e|coddle) (?:me|my [a-z]+))(?=\Z|[,;:.(]| (?:or|about)\b)"
    r"|\A(?:please,? )?(?P<keep>keep (?:(?:your |the |all (?:your )?)?(?:answers|replies"
    r"|responses) (?:short|brief|concise|simple|terse|to the point|(?:under|below|within"
    r"|shorter than|to) \w+ (?:lines?|sentences?|words|paragraphs?))\b|(?:the |all |your )?(?:code"
    r"|examples|code examples|snippets) in [A-Z]\w*(?=\Z|[,;:.(]| please)))"
)
# How the assistant speaks: a ban on that holds for every answer.
_MANNER = (
    r"(?:say|tell|ask|call|begin|start|end|finish|open|close|put|use|write|rewrite|make|give|add"
    r"|offer|apologi[sz]e|thank|praise|guess|repeat|quote|explain|round|correct|send|sign|show"
    r"|include|mention|treat|talk|speak|answer|reply|list)"
)
_NOT_SO = re.compile(
    rf"{_SO}(?P<what>(?:(?:do not|stop) (?:ever )?|never ){_MANNER}(?:ing)?\b(?! (?:that"
    rf"|this|it|them|him|her|he|she|the (?:kids?|children|boss)|any ?(?:one|body)|me\Z|me (?:that"
    rf"|it|you|he|she|they)|about it)\b)"
    r"(?=.*\b(?:me|my|I|a|an|with|what|how|when|every)\b).{3,90}?)(?=\Z|[,;:(])"
)
# What is done with all that one sends: "When I send you a draft, don't correct it".
_WHENEVER = re.compile(
    rf"{_SO}(?P<when>when(?:ever)? I "
    r"(?:send|give|ask|write|paste|show|post|share)\b[^,]{2,60}), (?:please |just |you )*"
    r"(?P<do>(?:do not |always |never )?(?P<verb>[a-z]+)\b.{2,80}?)(?=\Z|[;:(])"
)
# What was asked for once is free again: "you can use emojis", "feel free to write longer answers".
_ALLOWED = re.compile(
    rf"{_SO}(?:feel free to|you (?:can|may)(?: now)?)"
    r" (?P<what>(?:use|go|write|be|give|add|swear|answer|reply|make)\b[^,;.]{3,60}?)"
    r"(?: with me)?(?=\Z|[,;:.(])"
)
# How answers look, sound and measure, as a whole sentence: nobody means one answer by it.
_BY_NATURE = re.compile(
    rf"{_SO}(?:(?:can|could) you )?(?P<what>(?:give|show|tell) me everything in (?:metric|imperial"
    rf"|celsius|fahrenheit|euros?|dollars)(?: units)?|use (?:the )?(?:metric|imperial|celsius"
    rf"|fahrenheit"
    r"|24[- ]hour)(?: \w+)?|use (?:uk|us|british|american) (?:spelling|english)|be (?:more |very"
    r" )?(?:concise|brief|succinct)|(?:write|answer|reply|spell|talk|speak)(?: to me)? in"
    r" (?:british|american|uk|us|plain) english|(?:give|show|tell) me (?:all )?(?:the"
    r" )?(?:temperatures|distances|weights|measurements|units|dates|times|amounts) in \w+(?:"
    r" units)?|refer to me as [\w/]+|be (?:a (?:bit|little) )?(?:less|more) [a-z]+ (?:with|to) me"
    r"|(?:no|avoid|skip) (?:any )?(?:emojis?|exclamation (?:marks|points)|jargon|hashtags|slang"
    r"|acronyms)|(?:do not|stop) (?:apologi[sz]|sugarcoat|patroni[sz]|lectur|flatter)(?:e"
    r"|ing)?(?: me| things)?|explain (?:things|everything) (?:simply|in \w+ (?:terms|words"
    r"|language)|like I am (?:five|5|ten)|step by step)|ask (?:me )?(?:first )?before (?:you"
    r" )?[a-z]+ (?:any[a-z]*|files|code)\b[^,;]{0,40}?)(?: please| pls| all the time| for me| to"
    r" me| with me| in (?:your )?(?:answers|replies))*(?=\Z|[,;:(])"
)
_WANTED = re.compile(
    r"(?i)\AI (?:want|would like|need|prefer) (?P<what>(?:all |your |all your )(?:the )?(?:code "
    r"|\w+ )?(?:examples|code|answers|replies|snippets|recipes|explanations)(?: to be)? (?:in|with"
    r"|without) .{2,40})\Z"
)
_UNWANTED = re.compile(
    r"(?i)\AI do not want (?P<what>(?:any )?[\w ]{3,30} in (?:my|your) (?:recipes|answers|replies"
    r"|meal plans?|emails|code|drafts))\b.*"
)
_PLEASE = re.compile(r"(?i)[,\s]+(?:please|pls|thanks|thank you)[\s.!]*\Z")
_WANTS_YOU = re.compile(r"(?i)\A(?:I (?:want|need|would like) you to )")
_PARTS = re.compile(r"[,;:]\s+|\s+-+\s+|,?\s+(?:and|but|so)\s+")
_ONLY = re.compile(
    rf"{_SO}(?P<what>(?:celsius|fahrenheit|{LANGUAGE}|(?:metric"
    rf"|imperial)(?: units)?|(?:british|american|uk|us) spelling"
    rf"|24[- ]hour(?: clock)?)(?: only|(?=,? from now on)))(?:,? (?:please|pls|from now on))*\Z"
)
_LANGUAGE_AGAIN = re.compile(
    rf"(?i)\A(?:back to |in )?(?P<lang>{LANGUAGE})(?:(?: again)?(?: please)? from now on"
    rf"|,? again,? (?:please|pls|now))\b"
)
# What an instruction is about: another one about the same takes its place.
_TOPICS = (
    ("language", re.compile(rf"(?i)\b(?:answer|reply|respond|write|speak|talk)\b.*\b{LANGUAGE}\b")),
    (
        "length",
        re.compile(
            r"(?i)\b(?:short|brief|concise|terse|long(?:er)?|shorter|detailed|at length"
            r"|\d+ (?:lines?|sentences?|words|paragraphs?))\b"
        ),
    ),
    ("emojis", re.compile(r"(?i)\bemojis?\b")),
    ("units", re.compile(r"(?i)\b(?:metric|imperial|celsius|fahrenheit)\b")),
    ("spelling", re.compile(r"(?i)\b(?:british|american) (?:english|spelling)\b")),
)
_REASON = re.compile(
    r"(?:[;]|, if (?:you (?:would|could|can)|that is)\b|,? (?:because|I prefer|I hate|I like"
    r"|(?<!like )I am|we are|since I|thanks|ok)\b)"
)
_FORMAT = re.compile(r"(?i)\b(?:bullet|emoji|markdown|list|table|jargon|code|heading|bold)")
_NOT_TO_ONE = re.compile(
    r"(?i)\A(?:always|never)\s+(?:been|had|knew|thought|wanted|loved|liked|was|is|gets?"
    r"|seems?|said|says|ever|mind|heard|seen|tried|works?|say never|a|the|nice|good|great|so|too"
    r"|going|really)\b"
)
_TOLD = frozenset(
    "answer reply respond write use speak address talk give keep call explain format avoid skip do "
    "don't stop include add show convert spell report provide highlight mention list cite ask "
    "check tell remind put start end begin say assume suggest recommend prefer treat remember "
    "translate describe return quote round sign greet summarise summarize present correct "
    "shorten".split()
)


def instructions_of(
    sentence: Sentence, words: Callable[[int, int], Words], company: Company
) -> Iterator[Candidate]:
    """What the assistant is told to do from now on."""
    if (
        company.me.thing.name != USER
        or sentence.question
        or BLOT in sentence.text
        or len(sentence.text) > 200
    ):
        return
    what = _instruction(spelt_out(sentence.text))
    if what is None:
        return
    what = _REASON.split(what)[0].strip(" ,.")
    what = re.sub(r"\bwhen(?:ever)? I ask\b", "when asked", what)
    me, said = company.me, third(what)
    yield Candidate(
        type="preference",
        subject=me.thing,
        predicate="prefers",
        object=said,
        text=f"{me.label} wants the assistant to {_infinitive(said)}",
        words=(words(sentence.start, sentence.end),),
        aspect=_topic_of(said),
        stance="positive",
        category="instructions",
        confidence=0.8,
    )


def _topic_of(said: str) -> str:
    """What it is about: the units, or what there is to be in no answer, or in all of them."""
    for topic, about in _TOPICS:
        if about.search(said):
            return topic
    named = _A_FORMAT.search(said)
    return named[0].lower() if named else ""


def _instruction(text: str) -> str | None:
    """What is to be done from now on, as an order."""
    text = _WANTS_YOU.sub("", text)
    if manner := _by_nature(text):
        return manner
    if (again := _LANGUAGE_AGAIN.match(text)) is not None:
        return f"answer in {again['lang']}"
    if (lasting := _lasting(text)) is not None:
        return lasting
    if (sent := _WHENEVER.match(text)) is not None and sent["verb"].lower() in _TOLD:
        return (
            f"{sent['do']} {sent['when'].lower().replace('when i', 'when I').replace(' you', '')}"
        )
    found = _STANDING.match(text)
    what = found["what"] if found and not _NOT_TO_ONE.match(found["what"]) else None
    if what is None and (later := _FROM_NOW_ON.match(text)) is not None:
        what = later["first"] or later["then"]
    if what is None:
        return None
    verb = re.sub(r"\A(?:always|never|please) ", "", what, flags=re.IGNORECASE).split()[0].lower()
    return _PLEASE.sub("", what) if verb in _TOLD else None


def _by_nature(text: str) -> str:
    """ "Use metric units", "no emojis", "I want all examples in Rust"; empty where it is none."""
    if (short := _KEEP_SHORT.search(text)) is not None:
        return short["what"]
    if (unwanted := _UNWANTED.match(text)) is not None:
        return f"not use {unwanted['what']}"
    if text.startswith("I "):
        return f"give {wanted['what']}" if (wanted := _WANTED.match(text)) else ""
    manner = _BY_NATURE.match(text)
    what = manner["what"] if manner else ""
    return f"use {what.lower()}" if what[:3].lower() == "no " else what


def _is_manner(what: str) -> bool:
    """Whether it is about how the answers look, and not about one of them."""
    return _FORMAT.search(what) is not None or any(about.search(what) for _, about in _TOPICS)


def _lasting(text: str) -> str | None:
    """ "No american spelling for me", "don't give me tables ever", "Celsius only"."""
    if (none := _NONE_OF.match(text) or _ONLY.match(text)) is not None:
        of = none["what"] or f"no {none['never']}"
        return f"use {of[:1].lower()}{of[1:]}"
    for fine in filter(None, map(_FINE_AGAIN.match, _PARTS.split(text))):
        return f"give {fine['long'].lower()}" if fine["long"] else f"use {fine['what'].lower()}"
    if (without := _NOT_IN_ANY.match(text)) is not None:
        return without["what"]
    if (allowed := _ALLOWED.match(text)) is not None and _is_manner(allowed["what"]):
        return allowed["what"]
    found = _NOT_EVER.match(text)
    if found is None:
        parts = (_NOT_SO.match(part) for part in _PARTS.split(text))
        return next((part["what"] for part in parts if part), None)
    if found["keep"] or found["never"]:
        return found["keep"] or found["never"]
    return found["what"] if found["verb"].lower() in _TOLD else None


def _infinitive(what: str) -> str:
    first, _, rest = what.partition(" ")
    low = first.lower()
    if low == "never":
        return f"never {rest}"
    if low in ("do", "don't") and rest.startswith("not "):
        return f"not {rest[4:]}"
    return f"{low} {rest}".strip()
