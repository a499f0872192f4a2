"""What kind of thing a message says: traits, questions, decisions, sensitive matters."""

from __future__ import annotations

import re
from enum import IntFlag

from language.analyzer import ENGLISH, languages_of
from language.other_languages import only_asks_in

# Longer messages explain themselves, and so state something.
_LONGEST = 400
# Words of a sentence beside the question that state nothing: "Hi there!", "Thanks a lot."
_IDLE_WORDS = 3

_SENTENCE = re.compile(r"(?<!\bDr\.)(?<!\bMr\.)(?<!\bMs\.)(?<!\bSt\.)(?<=[.!?])\s+|\n+")
_WH = r"(?:what|which|when|where|who|whom|whose|why|how)(?:'s|'re|'d)?"
_AUXILIARY = (
    r"(?:do|does|did|is|are|am|was|were|has|have|had|can|could|will|would|shall|should|may|might"
    r"|must)"
)
_SUBJECT = r"(?:I|we|you|he|she|it|they|there|my|our|your|his|her|its|their|the|this|that|any)"
_REQUEST = (
    r"(?:please |can you |could you |would you |will you )?"
    r"(?:(?:tell|remind|show|ask) (?:me|us)|(?:i|we)(?:'d| would) (?:like|love) to know"
    r"|(?:i|we) (?:want|need) to know|(?:i|we)(?: am|'m|'re| are)? wonder(?:ing)?|list|name)"
)
# "I forgot when …", not "I forgot my umbrella".
_FORGOT = (
    r"(?:(?:but |sorry,? |oh,? |damn,? )?(?:i |we )?(?:(?:always |just |have |'ve |keep )*"
    r"forg(?:e|o)t(?:ten|ting)?|(?:just )?(?:can't|cannot|can not|don't|do not|couldn't)"
    r"(?: quite| really| seem to| even)? (?:remember|recall))|no idea|any idea)"
)
# What one asks to be given, which is one's own: "tell me my …", "find Anna's …".
_OWN = r"(?:(?:all |again )?(?:my|our|the)\b|[\w-]+'s\b)"
_COMMAND = (
    r"(?:please |can you |could you )?"
    rf"(?:(?:tell|give|show|get|fetch|find|remind) (?:me|us) (?:again )?(?:about |of )?{_OWN}"
    rf"|(?:find|look up|look for|search(?: for)?|retrieve) (?:{_OWN}|{_WH}\b))"
)
_MEASURE = r"how (?:much|many|old|long|far|often|tall|big|high|heavy|late|early|expensive|large)"
# The words of "which car", "what kind of counseling"; none of "what I like", "what annoys me is".
_OF_WHAT = r"(?: (?!(?:a|an|i|me|we|us|you|he|she|they|it)\b)[\w'’+/&.-]+,?){1,7}?"
_MADE = r"(?:bought|sold|gave|made|wrote|took|won|got|came|went|met|sent|lent|broke|built|taught)"
_HAPPENED = (
    r"(?:began|broke|brought|came|caught|cost|fell|flew|gave|got|grew|held|hit|hurt|led|made|ran|rang"
    r"|sat|shook|sounded|stood|stole|struck|took|went|woke|won)"
)
# What one asks about, before the question: "Between my car and my bike, which is older?".
_AMONG = (
    r"(?:(?:between|out of|of(?! course)|among|amongst) [^.!?]{3,160}?"
    r"|(?:across|considering|given|based on|regarding|in|for|with) "
    r"(?:(?!\b(?:i|i'm|i've|we|we're|we've|that|is|are|was|were|has|have|had)\b)[^.!?]){3,160}?), "
)
# What the answer is to be like: "Keep it short.", "Mention only three."; not "Use my own recipe."
_FORMAT = re.compile(
    r"(?i)(?:please,? |just |only |and )*(?:(?:mention|list|name|give|answer|reply|respond|keep"
    r"|limit|include|order|sort|rank|return|summari[sz]e|explain|use|be (?:brief|short|concise"
    r"|precise|specific|honest|exact))\b(?!.*\b(?:i|i'm|i've|my|mine|we|our|always|never|every"
    r" time|from now on)\b)[^,;:]*|(?:in |no more than |at most )?(?:a|one|two|three|five|ten|\d+)"
    r"(?: \w+)? (?:words?|sentences?|lines?|paragraphs?|bullet points|items)[.!]*)$"
)
# Questions whose words are in another order than an auxiliary's after its "what".
_ASKS_ODDLY = (
    r"(?:which|whose) (?!(?:means?|meant|reminds?|makes?|made|is|was|brings?|brought|leads?"
    r"|led|leaves"
    r"|left|sounds|seems|feels?|felt|explains|in|at|by|i|we|he|she|they|you|my)\b"
    r"|\w+ly\b)[\w'-]+ \w"
    rf"|what(?! \w+(?:s|ed) (?:is|was) (?-i:[a-z])| {_HAPPENED}\b){_OF_WHAT} {_AUXILIARY}\b"
    r"(?! (?:is|are|was|were)\b)"
    rf"|what (?:\w+ed|{_HAPPENED})\b(?!.* (?:is|are|was|were)\b)"
    rf"|{_MEASURE}{_OF_WHAT} {_AUXILIARY}\b|{_MEASURE} (?:{_AUXILIARY}|\w+ \w+ed)\b"
    rf"|who (?!knows\b|cares\b)(?:first |last )?(?:\w+(?:ed|s)|{_MADE})\b"
    rf"|(?:in|on|at|around|for|with|from|to|by|of|after|before|during|about) (?:what|which"
    rf"|whose|how many|how much){_OF_WHAT} {_AUXILIARY}\b"
    r"|(?:what|where|who|when|how) (?:my|our|the)\b[^,;]* (?:is|are|was|were)(?: again)?$"
    r"|(?:what|who|when|where|how)'?s (?:my|our|the)\b"
)
# What may stand before a question: "By the way, …", "In May 2023, …", "In which …".
_LEAD = (
    r"(?:(?!(?:i|i'm|i've|i'd|my|me|we|our|us)\b)[\w'-]+[ ]){0,7}?"
    r"(?:(?!(?:i|me|us)\b)[\w'-]+[,:][ ]+)"
)
_PREPOSITION = (
    r"(?:in|on|at|by|for|from|of|to|with|about|around|after|before|during|under|until|and|so|but"
    r"|then|also)[ ]+(?:\w+[ ]+){0,2}?"
)
_ASKS = re.compile(
    rf"(?i)(?:{_LEAD}|{_AMONG})?(?:(?:{_PREPOSITION})?{_WH}|{_AUXILIARY}(?:n't)?|{_REQUEST})\b"
    rf"|{_COMMAND}|{_FORGOT} {_WH}\b|{_ASKS_ODDLY}"
)
# Without a question mark the order of the words has to show it.
_ASKS_UNMARKED = re.compile(
    rf"(?i)(?:{_LEAD}|{_AMONG})?(?:(?!which is (?:why|how|what|when)\b){_WH} {_AUXILIARY}\b"
    rf"|{_AUXILIARY} {_SUBJECT}\b|{_REQUEST} {_WH}\b"
    r"|(?:do|does|did|is|are|was|were|has|can|could|should|would) (?-i:[A-Z]\w+)\b(?!')"
    rf"|{_COMMAND}|{_FORGOT} (?:{_WH}|the name of)\b|{_ASKS_ODDLY})"
)
# The question states something of its author as well: "…, I'm allergic", "did you know I moved".
_TELLS_BESIDE = re.compile(
    r"(?i)(?:[,;:(–—-] ?|\b(?:and|but|because|since|as|though|although|if|now that|given that"
    r")\s+)(?:i|we)(?:'m|'ve|'d|'re)?\b(?! (?:want|need) to know)"
    r"|, (?:can you believe|[a-z]+n't (?:it|that|this|they|he|she|i|you|we))\b"
    r"|\b(?:my|our)\s+\w+(?:\s(?!(?:with|to|for|at|on|from|about|and|before|after|in|of|by|via"
    r"|using)\b)\w+)?\s(?-i:[A-Z][a-z]+)"
)
# "Did you know that I moved", not "What did I say I do".
_ANNOUNCES = re.compile(
    rf"(?i)(?!{_WH}\b).*\b(?:you know|you believe|tell you|told you|you hear|mention(?:ed)?|said)"
    r"(?: that)? (?:i|we)(?:'m|'ve|'d|'re)?\b(?! (?:want|need) to know)"
)
# "Hmm, so how …", "Wow! What …": a question within a talk, about what was just said.
_TAKES_UP = re.compile(
    r"(?i)\W*(?:hm+|ok(?:ay)?|oh|ah|wow|whoa|cool|great|nice|awesome|amazing|yeah|yes|yep|no|nope"
    r"|so|and|but|or|right|sure|thanks|thank you|haha|well|that['’]s|you)\b"
)
# Whom it is addressed to, and what is said of the asking: it states nothing.
_SPACES = re.compile(r"[ \t]+")
_ADDRESS = re.compile(r"^@\w+[,:]?\s+")
_ASIDE = re.compile(
    r"(?i)\s*[,;(–—-]?\s*\b(?:(?:i|we) )?(?:(?:keep|always|just) )*(?:forgetting|forgot|forget"
    r"|(?:can't|cannot|don't) (?:remember|recall))(?: it| again| that)?[).!]*(?=\?*$)"
)
# "Anna's wedding?", "And the meeting with Nora?": a few words without a verb or somebody who does.
_ELLIPTICAL = re.compile(
    r"(?i)(?:(?:and|or|so|but|what about|how about) )?(?:(?:my|our|the|a|an|his|her|their|\w+'s)\b|"
    r"(?!(?:\w+ing|yes|no|really|right|you|i)\b)\w+ \w+\b)"
    r"(?:(?! (?:i|we|you|he|she|they|it|is|are|was|were|has|have|had|did|does|do|will|would"
    r"|\w+ed)\b)"
    r" [\w'-]+){0,5}\?$"
)
_MARKED = re.compile(r"[?？؟]")
_POINTER_AT_END = re.compile(r"\[§ W-\d+/R-\d+/D-\d+\]\s*$")


def only_asks(text: str) -> bool:
    """Whether each sentence only asks; "I'm allergic to nuts, what can I eat?" states something."""
    if len(text) > _LONGEST:
        return False
    plain = _SPACES.sub(" ", text.replace("’", "'").strip())
    languages = languages_of(plain)
    if languages[0] == ENGLISH and _only_asks_in_english(plain):
        return True
    return languages != (ENGLISH,) and only_asks_in(_ADDRESS.sub("", plain), languages)


def _only_asks_in_english(text: str) -> bool:
    asked = False
    for sentence in _SENTENCE.split(text):
        bare = _ASIDE.sub("", _ADDRESS.sub("", sentence))
        # Who addresses somebody, or says that they forgot, asks as with a question mark.
        opening = _ASKS if bare.endswith("?") or bare != sentence else _ASKS_UNMARKED
        if opening.match(bare):
            if _TELLS_BESIDE.search(bare) or _ANNOUNCES.match(bare):
                return False
            asked = True
        elif len(bare.split()) > _IDLE_WORDS and not (asked and _FORMAT.match(bare)):
            return False
    return asked


def is_elliptical(text: str) -> bool:
    """Whether it asks by naming something: "Anna's wedding?"."""
    return _ELLIPTICAL.fullmatch(text.replace("’", "'").strip()) is not None


def takes_up(text: str) -> bool:
    """Whether it opens by taking up what was just said, as a question within a talk does."""
    return _TAKES_UP.match(text) is not None


def only_quotes(text: str) -> bool:
    """Whether it is quotations alone, each with the pointer of the drawer it is from.

    One line may introduce them.
    """
    if "[§ W-" not in text:
        return False
    parts = [part.strip() for part in text.split("\n\n") if part.strip()]
    quoted = [part for part in parts if part.startswith(">")]
    others = [part for part in parts if not part.startswith(">")]
    introduced = len(others) <= 1 and all("\n" not in part for part in others)
    return introduced and bool(quoted) and all(_POINTER_AT_END.search(part) for part in quoted)


_DECISION = re.compile(
    r"(?i)\b(?:(?:i|we)(?:'ve| have)? (?:finally |just |both |all )?(?:decided|agreed|settled on"
    r"|opted|chose|picked)|(?:i|we)(?:'ll| will|'re going to| am going to|'m going to) (?:go|stick"
    r"|stay) with|(?:i'm|i am|we're|we are) (?:going|sticking|staying) with|let's (?:go|stick"
    r"|stay) with|let's settle on|(?:the|our|my|final) (?:final )?decision (?:is|was)|decided:"
    r"|decision:|it(?:'s| is) decided|(?:it was|was|is|been) (?:decided|agreed) (?:that|to|on))\b"
)
_MAY_DECIDE = re.compile(
    r"(?i)deci[ds]|agreed|settle|opted|chose|picked|\b(?:go|going|stick|sticking|stay|staying) with"
)
# Just before the cue: it is no decision yet.
_UNDECIDED = re.compile(
    r"(?i)\b(?:if|whether|unless|until|before|once|when|should|could|might|would|never|not|wish)\b"
    r"(?:\W+\w+){0,3}\W*$"
)
_CORRECTING = re.compile(
    r"(?i)^\W*no\b[,.! ]|\bthat(?:'|’)?s (?:not|wrong|incorrect)|\bnot what i\b|\bi (?:already )?"
    r"(?:said|told you|asked (?:you )?(?:for|to)|meant)\b|\bi(?:'|’)ve (?:already )?told you\b|"
    r"\byou (?:misunderstood|forgot|ignored|got (?:it|that) wrong|keep|didn(?:'|’)?t)\b|"
    r"\b(?:stop|quit) \w+ing\b|\b(?:don(?:'|’)?t|do not|never) (?:do|use|write|add|give|send|"
    r"change|say|call|ask|put|make|tell|remove|delete|include|repeat)\b|\bhow many times\b|"
    r"\b(?:wrong|incorrect|useless) (?:again|answer|file|one|name|date|format)\b|\bstill wrong\b|"
    r"\bonce again\b|\binstead of\b"
)
_SENSITIVE = re.compile(
    r"(?i)\b(?:passwords?|passcodes?|passphrases?|passkeys?|credentials?|tokens?|secrets?|api keys?"
    r"|private keys?|ssh|log ?ins?|sign ?ins?|2fa|two.factor|authenti\w+|authori[sz]\w+"
    r"|permissions?|secure\w*|security|insecure|securing|encrypt\w+|decrypt\w+|firewalls?|vpn"
    r"|certificates?|money|banks?|banking|accounts?|cards?|credit|debit|pay|pays|paid|payments?"
    r"|paypal|invoices?|invest\w*|stocks?|shares?|crypto\w*|bitcoin|loans?|mortgages?|tax|taxes"
    r"|salary|budgets?|buy|buys|buying|purchas\w+|order(?:s|ing)? online|subscriptions?|transfers?"
    r"|wire|iban|insurance|refunds?|prices?|spend\w*|financ\w+|social security|pin)\b"
)


def may_decide(text: str) -> bool:
    """Whether a sentence of the text may be a decision; cheaper than `decides` of each."""
    return _MAY_DECIDE.search(text) is not None


def decides(sentence: str) -> bool:
    """Whether a sentence announces a decision."""
    cue = _DECISION.search(sentence)
    return cue is not None and not _UNDECIDED.search(sentence, 0, cue.start())


def corrects_assistant(text: str) -> bool:
    """Whether a message says that the assistant was wrong, or asks it to stop something."""
    return _CORRECTING.search(text) is not None


def is_sensitive(text: str) -> bool:
    """Whether a text is about secrets, security or money."""
    return _SENSITIVE.search(text) is not None


_READ_AT_EITHER_END = 2_000  # Characters; a pasted page is of one kind throughout.


class Trait(IntFlag):
    """As stored, one bit each: a value must never come to mean something else."""

    ENDS_ASKING = 1
    MOSTLY_ASKS = 2
    NUMBER = 4
    TIME = 8
    NAME = 16
    NAMES = 32  # Two or more.
    SELF = 64
    MUCH_SELF = 128  # Three or more.
    PLACE = 256
    REASON = 512
    GREETS = 1024
    ONLY_ASKS = 2048
    ONLY_QUOTES = 4096  # What is in the palace already.
    TAKES_UP = 8192  # It only asks, about what was just said.


# Alone, that is: what else it says is all in the palace, or asked of it.
TELLS_NOTHING = Trait.ONLY_ASKS | Trait.ONLY_QUOTES

_SENTENCE_END = re.compile(r"(?<=[.!?؟])\s+|(?<=[。！？])")
_MARKS = ("?", "？", "؟")
_PRESENT = {
    Trait.NUMBER: re.compile(
        r"(?i)\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|"
        r"fifty|hundred|thousand|once|twice|couple|dozen|half)\b"
    ),
    Trait.TIME: re.compile(
        r"(?i)\b(?:yesterday|today|tonight|tomorrow|last|next|ago|since|week|weekend|month|year|day"
        r"|morning|evening|night|january|february|march|april|may|june|july|august|september"
        r"|october|november|december|monday|tuesday|wednesday|thursday|friday|saturday|sunday|\d{4}"
        r"|recently|just|soon)\b"
    ),
    Trait.PLACE: re.compile(
        r"\b(?:in|at|to|from|near) (?:the )?[A-Z][a-z]+|\b(?:at|to|in) (?:a|the|my|our) \w+"
    ),
    Trait.REASON: re.compile(
        r"(?i)\b(?:because|since|so that|in order|helps? me|inspired?|motivat\w+|reason|feel|felt|"
        r"love|want)\b"
    ),
    Trait.GREETS: re.compile(
        r"(?i)^\s*(?:hey|hi|hello|wow|thanks|thank you|oh|yeah|yep|sure|awesome|great|cool|congrats"
        r"|bye|take care|ok|okay|sounds|absolutely|definitely|no problem|nice|that['’]s)\b"
    ),
}
# Within a sentence only: the first word of one is capitalised whatever it is.
_NAME = re.compile(r"(?<=[a-z,;] )[A-Z][a-z]+")
_SELF = re.compile(r"\b(?:I|my|we|our|me)\b")


def read_traits(text: str) -> Trait:
    """The traits of a message; a long one is read by its first and last two thousand characters."""
    idle = _idle(text)
    if len(text) > 2 * _READ_AT_EITHER_END:
        text = f"{text[:_READ_AT_EITHER_END]}\n{text[-_READ_AT_EITHER_END:]}"
    found = _asking(text) | idle
    for trait, pattern in _PRESENT.items():
        if pattern.search(text):
            found |= trait
    names, selves = len(_NAME.findall(text)), len(_SELF.findall(text))
    found |= Trait.NAME if names else Trait(0)
    found |= Trait.NAMES if names > 1 else Trait(0)
    found |= Trait.SELF if selves else Trait(0)
    return found | (Trait.MUCH_SELF if selves > 2 else Trait(0))


def _idle(text: str) -> Trait:
    """Of the whole text: what stands in its middle may state something."""
    if only_quotes(text):
        return Trait.ONLY_QUOTES
    if only_asks(text):
        return Trait.ONLY_ASKS | (Trait.TAKES_UP if takes_up(text) else Trait(0))
    # Within a talk these words may well be news: "Your new job?".
    return Trait.ONLY_ASKS | Trait.TAKES_UP if is_elliptical(text) else Trait(0)


def _asking(text: str) -> Trait:
    if not _MARKED.search(text):
        return Trait(0)
    sentences = [each for each in _SENTENCE_END.split(text.strip()) if each]
    words = [len(each.split()) for each in sentences]
    asks = [each.endswith(_MARKS) for each in sentences]
    asked = sum(number for number, asking in zip(words, asks, strict=True) if asking)
    found = Trait.ENDS_ASKING if asks[-1] else Trait(0)
    return found | (Trait.MOSTLY_ASKS if 2 * asked > sum(words) else Trait(0))
