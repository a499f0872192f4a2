"""What is not meant, not known or not the writer's own: it says nothing of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from language.english import words
from language.english.facts.sentences import BLOT
from language.english.facts.verbs import ING, PAST

# Without any of these nobody speaks of themselves or of somebody they know.
_SPEAKS = re.compile(
    r"(?i)\b(?:I|i|I'm|im|Im|my|our|we|User|me|mine|myself)\b|\b(?:My|Our|We|Me)\b|\b(?:always"
    r"|never|from now on|call me|favou?rite|allergic|vegetarian|vegan|moved|lives|mum|mom|dad"
    r"|grandma|grandpa|married|passed away|died|cancelled|canceled|renamed|is now called|live"
    r"|works?|got|quit|had to|here|living|working|taking|studying|learning|turning|moving|flying"
    r"|born|been|came off|sold|bought|started|starting|joined|left|swapped|switched|ditched"
    r"|finished|love|hate|prefer|stand|fan|diabetic|pregnant|a year|no longer|trying|saving"
    r"|drinking|broke|turned|retired|she|he|her|his|hes|shes|ive|used to be|traded|swapped|replaced"
    r"|raise|please|pls|packed in|ran away|went missing|called|keep|only|dropped|without|goodbye"
    r"|name"
    r"|b-?day|birthday|haven'?t|(?:do|ca|did)n'?t|fav|arrived"
    r"|relocating|emojis?|metric|imperial|celsius|fahrenheit|jargon|exclamation|sugarcoat"
    r"|apologi[sz]\w+|spelling|gonna|going to|in (?:the )?future|going forward|brief|when you"
    r"|diagnosed|person|into|keen|sucker|partial|wearing"
    r"|any day|thing|kids|on|off|upped|raised|increased|lowered|call|replies|answers)\b"
    # "New 10k PB: 48:31".
    r"|\bnew(?= (?:[\w-]+ ){0,2}[\w-]+(?::|,| is) [€$£]?\d)"
)

# "TypeScript is great": an opinion without an "I".
_FIRST_WORDS = re.compile(r"(?:(?<=\A)|(?<=[.!?\n])|(?<=[.!?] ))[A-Za-z][a-z]+")
_SOMETHING_IS = re.compile(
    r"(?:\A|[.!?,;:]\s)(?:[Tt]he )?[A-Z][\w+#']*(?: [\w']+){0,3} (?:is|are)\b"
)

_BEGIN = PAST.keys() | ING.keys()
# Asked to act as one of these, the assistant plays nobody.
_HELPER = (
    r"(?:\w+ ){0,2}(?:editor|proofreader|translator|tutor|teacher|coach|expert|assistant|consultant"
    r"|reviewer|adviser|advisor|analyst|developer|engineer|programmer|copywriter|writer)\b"
)
_LET_US_PLAY = r"let(?:'?s| us) (?:play\b(?=.*\b(?:you are|you'?re|you be|I am|I'?m)\b)|pretend)"
# Whoever asks for a text to be made gives what is to be in it, not what is so.
_MADE_UP = re.compile(
    rf"(?i)\b(?:translat(?:e|ion)|{_LET_US_PLAY}"
    rf"|role[\s-]?play|pretend|act as(?! (?:an? |my )?{_HELPER})|you are now|play the (?:part|role)"
    rf"|imagine|in character|npcs?|backstor(?:y|ies)|subtitles|fake (?:users?|people|profiles?)"
    rf"|mock data|screenplay|proofread|proof-read|rewrite|re-write|rephrase|paraphrase|(?:correct"
    rf"|fix|check|improve) (?:the|my|this|these) (?:grammar|spelling|text|sentences?|english"
    rf"|paragraph|essay)|grammar (?:exercise|question|check)|exercise sentences?|riddle|lyrics"
    rf"|monologue|(?:d&d|dnd|rpg|game|player) character|my character|main character|the narrator"
    rf"|in (?:my|the|a) (?:\w+ )?(?:novel|story|book(?! club)|game|campaign|dream|chapter|episode"
    rf"|sequel)|i (?:dreamt|dreamed|had a dream)|once upon a time|(?:sample|example) sentences?"
    rf"|unit test|test data|ignore (?:all|any|the|your|previous|earlier))\b"
)
_WRITE = re.compile(
    r"(?i)\b(?:write|draft|compose|create|generate|make up|invent|give me|tell me|come up with"
    r"|continue|finish)\b(?:\s+[\w'-]+){0,5}?\s+(?:story|poem|haiku|limerick|song|sonnet|diary"
    r"|dialogue|monologue|scene|fairy tale|fable|joke|script|letter|e?-?mail|cover letter|essay|bio"
    r"|biography|profile|speech|blog post|post|tweet|message|note|caption|review|toast|eulogy"
    r"|introduction|intro|paragraph|text|rap|testimonial|persona|statement)\b"
)
_FOR_OTHERS = re.compile(
    r"(?i)(?:for (?:example|instance)|e\.?g\.?)[,: ]|(?:please )?tell (?!me\b|us\b)[^,;:]*\Z"
)
_FICTION = re.compile(
    r"(?i)\b(?:story|poem|haiku|limerick|song|sonnet|diary|dialogue|monologue|scene"
    r"|fairy tale|fable|joke|script|rap|persona)\b"
)
_PLAY = re.compile(
    rf"(?i)\b(?:role[\s-]?play|{_LET_US_PLAY}|pretend (?:that |to )?|act as(?! (?:an? "
    rf"|my )?{_HELPER})|you are now|in character)"
)
_PLAY_ENDS = re.compile(
    r"(?i)\b(?:stop (?:the )?(?:role[\s-]?play|pretending|acting)|end of (?:the )?role[\s-]?play"
    r"|out of character|back to reality|seriously now|enough of)\b"
)

_NOT_MEANT = re.compile(
    r"(?i)\b(?:just kidding|kidding|jk|j/k|as a joke|joking|lol sure|yeah right|yeah sure|as if\b"
    r"|sarcasm|said no one|kill me|in my dreams|april fools?|not really a|wink wink|/s\b"
    r"|my favou?rite thing in the world|best day (?:of my life|ever)|yeah,? (?:I )?(?:totally"
    r"|really|just|absolutely|so) (?:love|adore|enjoy)|the queen of|the king of|king of england"
    r"|the pope|in a past life|in another life|in my next life)\b|\b(?:oh|ah),? (?:great|sure|joy"
    r"|wonderful|fantastic)\b|\A(?:sure|right|yeah), and\b|\(not\)|/s\Z"
)
_SHOUTED = re.compile(r"\bLOVE\b|\bADORE\b")
_SAYS = (
    r"(?:said|says|say|told|tells|wrote|writes|claims?|claimed|thinks|thought|believes?|asked|asks"
    r"|insists?|quote|mentioned|replied|answered|suggested|reckons|joked|swears|texted|heard"
    r"|assumes?|assumed|guessed|argues?)"
)
_REPORTED = re.compile(
    rf"\b(?:he|she|they|who|everyone|everybody|somebody|someone|people|you|it|[A-Z][a-z]+|[Mm]y"
    rf" [\w-]+|[Oo]ur [\w-]+|[Tt]he (?!scales?\b)[\w-]+)(?: always| often| once| just| has| have"
    rf"| had| also)*"
    rf" {_SAYS}\b(?! (?:for|at|in|to me about|hi|hello)\b)|\baccording to\b|\b[Qq]uot(?:e|ing"
    rf"|ation)\b|\bas (?:he|she|they) put it\b|\bI said,? (?=I\b)|\b\w+: I\b|\bfwd\b|\bthe"
    rf" (?:letter|email|sign|label)\b"
)
_BEGINS_REPORT = re.compile(
    r"\b(?<!\bI )(?<!\b[Ww]e )(?:writes|wrote|says|asks|asked|replied|complains|complained|posted"
    r"|texted|emailed|mailed|messaged|reads|goes|went|put it|my (?:essay|draft|letter|poem|text"
    r"|speech|paragraph))\b[^:.!?]{0,30}:\s*\S"
)
_OPEN = re.compile(
    r"(?i)\b(?:if|unless|whether|imagine|suppose|supposing|assume|assuming|pretend|hypothetically"
    r"|let us say|let's say|lets say|what about|in case|wish|wishes|maybe|perhaps|probably|possibly"
    r"|might|may have|could have|should have|would have|I thought (?:that )?(?:I|we)(?! would"
    r"| should| could|'d)\b|guess|wonder|wondering|doubt|not sure|unsure|sounds like|seems?"
    r"|looks like|feels like|as though|supposedly|apparently|say I|had I|should I|can I|do I|am I"
    r"|did I|were I|when I grow up|someday|in theory|who knows|let me know|for example|e\.g"
    r"|such as I|until I|before I|once I|as soon as|even if|as long as|or else|instead of me"
    r"|not true that|(?:lie|myth|rumou?r) that)\b"
)
_ASKS = re.compile(
    r"(?i)\A(?!do(?: not|n't) forget\b)(?:and |but |so |also |please |then )*(?:what|how|why|when"
    r"|where|who|which|whose|is|are"
    r"|am|was|were|do|does|did|can|could|would|should|shall|will|has|have(?! not\b)|had(?! to\b)"
    r"|may|any|should|isn't|aren't|don't|doesn't|didn't|can't|won't)\b(?! (?:I want|I need|I like"
    r"|I love|I mean|I wanted|is|are) )"
)
_ORDERS = re.compile(
    r"(?i)\A(?:please |can you |could you )?(?:write|draft|tell|explain|show|give|help|make"
    r"|list|suggest|describe|create|generate"
    r"|find|compare|summari[sz]e|recommend|rewrite|convert|calculate|say"
    r"|note that(?! (?:I|we|my|our)\b))\b"
)


_SUPPOSED = re.compile(
    r"(?i)\b(?:if|unless|imagine|suppose|supposing|assume|assuming|pretend|hypothetically|let'?s"
    r"|say|wish)\b"
)
# One of these words is in whatever the pattern finds; looking for them first is much quicker.
_SIGNS_OF_MADE_UP = words("signs_of_fiction")
_SIGNS_OF_WRITING = frozenset(
    "write draft compose create generate make invent give tell come continue finish".split()
)
_SIGNS_OF_JOKES = words("signs_of_jokes")
_SIGNS_OF_OPEN = words("signs_of_doubt")
_WORD = re.compile(r"[a-z]+")


@lru_cache(maxsize=16)
def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.lower()))


# No other thread goes on during a search, so a long text is searched in pieces.
_PIECE_CHARS, _OVERLAP_CHARS = 10_000, 500


def _pieces(text: str) -> Iterator[tuple[int, int]]:
    """Beginnings and ends of stretches, each overlapping the next."""
    for start in range(0, max(len(text), 1), _PIECE_CHARS):
        yield start, start + _PIECE_CHARS + _OVERLAP_CHARS


def speaks_of_itself(text: str) -> bool:
    """A cheap look before anything else is done."""
    return any(
        _SPEAKS.search(text, *piece) is not None
        or _SOMETHING_IS.search(text, *piece) is not None
        or any(first[0].lower() in _BEGIN for first in _FIRST_WORDS.finditer(text, *piece))
        for piece in _pieces(text)
    )


def begins_play(text: str) -> bool:
    return "?" not in text[:20] and any(_PLAY.search(text, *piece) for piece in _pieces(text))


def ends_play(text: str) -> bool:
    return _PLAY_ENDS.search(text) is not None


def begins_made_up(sentence: str) -> bool:
    """Whether this sentence, and what follows it in the message, tells of what is made up."""
    words = _words(sentence)
    if not words.isdisjoint(_SIGNS_OF_MADE_UP) and _MADE_UP.search(sentence):
        return True
    asked = None if words.isdisjoint(_SIGNS_OF_WRITING) else _WRITE.search(sentence)
    return asked is not None and _FICTION.search(asked[0]) is not None


def begins_report(sentence: str) -> bool:
    """Whether somebody else's words begin: "a customer writes: I moved to Hamburg"."""
    return ":" in sentence and _BEGINS_REPORT.search(sentence) is not None


def asks_for_text(sentence: str) -> bool:
    """Whether it is a request to write something: what it says may be meant for the text."""
    words = _words(sentence)
    return not words.isdisjoint(_SIGNS_OF_WRITING) and _WRITE.search(sentence) is not None


def is_for_others(sentence: str) -> bool:
    """Whether it is an example, or what somebody else is to be told: "tell Ana I sold it"."""
    return _FOR_OTHERS.match(sentence) is not None


def is_not_meant(sentence: str) -> bool:
    """Irony and jokes, as far as words give them away."""
    joking = not _words(sentence).isdisjoint(_SIGNS_OF_JOKES) and _NOT_MEANT.search(sentence)
    return bool(joking) or _SHOUTED.search(sentence) is not None


def is_reported(clause: str) -> bool:
    return BLOT in clause or _REPORTED.search(clause) is not None


def is_open(clause: str) -> bool:
    """A condition, a wish or a guess."""
    return not _words(clause).isdisjoint(_SIGNS_OF_OPEN) and _OPEN.search(clause) is not None


def own_part(clause: str) -> str:
    """Up to where others' words begin: "My brother Tom says"."""
    reported = _REPORTED.search(clause)
    return clause[: reported.end()] if reported else clause


def supposes(clause: str) -> bool:
    """Whether even what it takes for granted may not be so: "if my wife Ana asks"."""
    return BLOT in clause or _SUPPOSED.search(clause) is not None


def asks(clause: str) -> bool:
    return _ASKS.match(clause) is not None


def orders(clause: str) -> bool:
    return _ORDERS.match(clause) is not None
