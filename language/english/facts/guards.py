"""What is not meant, not known or not the writer's own: it says nothing of them."""

from __future__ import annotations

import re
from functools import lru_cache

from language.english.facts.sentences import BLOT
from language.english.facts.verbs import PAST

# Without any of these nobody speaks of themselves or of somebody they know.
_SPEAKS = re.compile(
    r"\b(?:I|i|I'm|im|Im|my|our|we|User|me|mine|myself)\b|\b(?:My|Our|We|Me)\b"
    r"|\b(?:always|never|from now on|call me|favou?rite|allergic|vegetarian|vegan|moved|lives"
    r"|mum|mom|dad|grandma|grandpa|married"
    r"|passed away|died|cancelled|canceled|renamed|is now called|live|works?|got|quit|had to"
    r"|here|living|working|taking|studying|learning|turning|moving|flying|born|been|came off|sold"
    r"|bought|started|starting|joined|left|swapped|switched|ditched|finished|love|hate|prefer"
    r"|stand|fan|diabetic|pregnant|a year|no longer|trying|saving|drinking|broke|turned|retired"
    r"|she|he|her|his|hes|shes|ive|used to be|traded|swapped|replaced|raise|please|packed in"
    r"|called|keep|only|dropped|without|goodbye|name|b-?day|birthday|haven't|relocating|emojis?"
    r"|metric"
    r"|imperial|celsius|fahrenheit|jargon|exclamation|sugarcoat|apologi[sz]\w+|when you)\b"
    # "New 10k PB: 48:31".
    r"|\bnew(?= (?:[\w-]+ ){0,2}[\w-]+(?::|,| is) [€$£]?\d)",
    re.IGNORECASE,
)

# "TypeScript is great": an opinion without an "I".
_FIRST_WORDS = re.compile(r"(?:(?<=\A)|(?<=[.!?\n])|(?<=[.!?] ))[A-Za-z][a-z]+")
_SOMETHING_IS = re.compile(
    r"(?:\A|[.!?,;:]\s)(?:[Tt]he )?[A-Z][\w+#']*(?: [\w']+){0,3} (?:is|are)\b"
)

# Asked to act as one of these, the assistant plays nobody.
_HELPER = (
    r"(?:\w+ ){0,2}(?:editor|proofreader|translator|tutor|teacher|coach|expert|assistant|consultant"
    r"|reviewer|adviser|advisor|analyst|developer|engineer|programmer|copywriter|writer)\b"
)
# Whoever asks for a text to be made gives what is to be in it, not what is so.
_MADE_UP = re.compile(
    r"\b(?:translat(?:e|ion)|let(?:'s| us) play\b(?=.*\b(?:you are|you're|you be|I am|I'm)\b)"
    rf"|role[\s-]?play|pretend|act as(?! (?:an? |my )?{_HELPER})|you are"
    rf" now|play the (?:part"
    r"|role)|imagine|in character"
    r"|npcs?|backstor(?:y|ies)|subtitles|fake (?:users?|people|profiles?)|mock data|screenplay"
    r"|proofread|proof-read|rewrite|re-write|rephrase|paraphrase|(?:correct|fix|check"
    r"|improve) (?:the|my|this|these) "
    r"(?:grammar|spelling|text|sentences?|english|paragraph|essay)|grammar (?:exercise"
    r"|question|check)|exercise sentences?"
    r"|riddle|lyrics|monologue|(?:d&d|dnd|rpg|game|player) character|my character"
    r"|main character|the narrator"
    r"|in (?:my|the|a) (?:\w+ )?(?:novel|story|book|game|campaign|dream|chapter|episode|sequel)"
    r"|i (?:dreamt|dreamed"
    r"|had a dream)|sample sentence"
    r"|example sentences?|unit test|test data|ignore (?:all|any|the|your|previous|earlier))\b",
    re.IGNORECASE,
)
_WRITE = re.compile(
    r"\b(?:write|draft|compose|create|generate|make up|invent|give me|tell me"
    r"|come up with|continue|finish)\b"
    r"(?:\s+[\w'-]+){0,5}?\s+(?:story|poem|haiku|limerick|song|sonnet|diary|dialogue"
    r"|monologue|scene|fairy tale|fable|joke"
    r"|script|letter|e?-?mail|cover letter|essay|bio|biography|profile|speech"
    r"|blog post|post|tweet|message|note"
    r"|caption|review|toast|eulogy|introduction|intro|paragraph|text|rap|testimonial"
    r"|persona|statement)\b",
    re.IGNORECASE,
)
_FOR_OTHERS = re.compile(
    r"(?:for (?:example|instance)|e\.?g\.?)[,: ]|(?:please )?tell (?!me\b|us\b)[^,;:]*\Z",
    re.IGNORECASE,
)
_FICTION = re.compile(
    r"\b(?:story|poem|haiku|limerick|song|sonnet|diary|dialogue|monologue|scene"
    r"|fairy tale|fable|joke|script|rap|persona)\b",
    re.IGNORECASE,
)
_LET_US_PLAY = r"let(?:'s| us) (?:play\b(?=.*\b(?:you are|you're|you be|I am|I'm)\b)|pretend)"
_PLAY = re.compile(
    rf"\b(?:role[\s-]?play|{_LET_US_PLAY}|pretend (?:that |to )?|act as(?! (?:an? |my )?{_HELPER})"
    r"|you are now|in character)",
    re.IGNORECASE,
)
_PLAY_ENDS = re.compile(
    r"\b(?:stop (?:the )?(?:role[\s-]?play|pretending|acting)"
    r"|end of (?:the )?role[\s-]?play|out of character|back to reality"
    r"|seriously now|enough of)\b",
    re.IGNORECASE,
)

_NOT_MEANT = re.compile(
    r"\b(?:just kidding|kidding|jk|j/k|as a joke|joking|lol sure|yeah right|yeah sure"
    r"|as if\b|sarcasm|said no one"
    r"|kill me|in my dreams|april fools?|not really a|wink wink|/s\b"
    r"|my favou?rite thing in the world|best day (?:of my life|ever)"
    r"|yeah,? (?:I )?(?:totally|really|just|absolutely|so) (?:love|adore|enjoy)"
    r"|the queen of|the king of|king of england|the pope|in a past life"
    r"|in another life|in my next life)\b"
    r"|\b(?:oh|ah),? (?:great|sure|joy|wonderful|fantastic)\b|\A(?:sure|right"
    r"|yeah), and\b|\(not\)|/s\Z",
    re.IGNORECASE,
)
_SHOUTED = re.compile(r"\bLOVE\b|\bADORE\b")
_SAYS = (
    r"(?:said|says|say|told|tells|wrote|writes|claims?|claimed|thinks|thought|believes?"
    r"|asked|asks|insists?|quote"
    r"|mentioned|replied|answered|suggested|reckons|joked|swears|texted|heard|assumes?"
    r"|assumed|guessed|argues?)"
)
_REPORTED = re.compile(
    rf"\b(?:he|she|they|who|everyone|everybody|somebody|someone|people|you|it"
    rf"|[A-Z][a-z]+|my [\w-]+|our [\w-]+|the [\w-]+)"
    rf"(?: always| often| once| just| has| have| had| also)* {_SAYS}\b(?! (?:for|at|in"
    rf"|to me about|hi|hello)\b)"
    r"|\baccording to\b|\bquot(?:e|ing|ation)\b|\bas (?:he|she|they) put it\b"
    r"|\bI said,? (?=I\b)|\b\w+: I\b|\bfwd\b|\bthe (?:letter|email|sign|label)\b"
)
_BEGINS_REPORT = re.compile(
    r"\b(?<!\bI )(?<!\b[Ww]e )(?:writes|wrote|says|asks|asked|replied|complains|complained|posted"
    r"|texted|emailed|mailed|messaged|reads|goes|went|put it)\b[^:.!?]{0,30}:\s*\S"
)
_OPEN = re.compile(
    r"\b(?:if|unless|whether|imagine|suppose|supposing|assume|assuming|pretend"
    r"|hypothetically|let us say|let's say|lets say"
    r"|what about|in case|wish|wishes|maybe|perhaps|probably|possibly|might|may have"
    r"|could have|should have|would have"
    r"|I thought (?:that )?(?:I|we)(?! would| should| could|'d)\b"
    r"|guess|wonder|wondering|doubt|not sure|unsure|sounds like|seems?|looks like"
    r"|feels like|as though"
    r"|supposedly|apparently|say I|had I|should I|can I|do I|am I|did I|were I"
    r"|when I grow up|someday|in theory|who knows"
    r"|let me know|for example|e\.g|such as I|until I|before I|once I|as soon as"
    r"|even if|as long as|or else|instead of me)\b",
    re.IGNORECASE,
)
_ASKS = re.compile(
    r"\A(?:and |but |so |also |please |then )*(?:what|how|why|when|where|who|which"
    r"|whose|is|are|am|was|were|do|does|did|can|could|would|should|shall"
    r"|will|has|have(?! not\b)|had(?! to\b)"
    r"|may|any|should|isn't|aren't|don't|doesn't|didn't|can't|won't)\b"
    r"(?! (?:I want|I need|I like|I love|I mean|I wanted|is|are) )",
    re.IGNORECASE,
)
_ORDERS = re.compile(
    r"\A(?:please |can you |could you )?(?:write|draft|tell|explain|show|give|help|make"
    r"|list|suggest|describe|create|generate"
    r"|find|compare|summari[sz]e|recommend|rewrite|convert|calculate|note that|say)\b",
    re.IGNORECASE,
)


_SUPPOSED = re.compile(
    r"\b(?:if|unless|imagine|suppose|supposing|assume|assuming|pretend|hypothetically|let'?s|say"
    r"|wish)\b",
    re.IGNORECASE,
)
# One of these words is in whatever the pattern finds; looking for them first is much quicker.
_SIGNS_OF_MADE_UP = frozenset(
    "translate translation role roleplay pretend act you play imagine character npc npcs backstory"
    " backstories subtitles fake mock screenplay proofread proof rewrite re rephrase paraphrase"
    " let correct fix check improve grammar exercise riddle lyrics monologue narrator in dreamt"
    " dreamed dream sample example unit test ignore".split()
)
_SIGNS_OF_WRITING = frozenset(
    "write draft compose create generate make invent give tell come continue finish".split()
)
_SIGNS_OF_JOKES = frozenset(
    "kidding jk j joke joking lol yeah as sarcasm said kill dreams april not wink best favourite"
    " favorite queen king pope life oh ah sure right s".split()
)
_SIGNS_OF_OPEN = frozenset(
    "thought if unless whether imagine suppose supposing assume assuming pretend hypothetically"
    " let lets what case wish wishes maybe perhaps probably possibly might may could"
    " should would guess"
    " wonder wondering doubt not unsure sounds seem seems looks feels as supposedly apparently say"
    " had can do am did were when someday theory who example e such until before once even long or"
    " instead".split()
)
_WORD = re.compile(r"[a-z]+")


@lru_cache(maxsize=16)
def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.lower()))


def speaks_of_itself(text: str) -> bool:
    """A cheap look before anything else is done."""
    if _SPEAKS.search(text) is not None or _SOMETHING_IS.search(text) is not None:
        return True
    return any(first[0].lower() in PAST for first in _FIRST_WORDS.finditer(text))


def begins_play(text: str) -> bool:
    return _PLAY.search(text) is not None and "?" not in text[:20]


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
