"""What a question asks: its intent and its subject."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from language.analyzer import ENGLISH, analyze
from language.english.dates import TimeIntent
from language.english.dates.spans import MONTHS, WEEKDAYS


@dataclass(frozen=True, slots=True)
class Intent:
    """What a question is after; several may hold, or none.

    Attributes:
        asks_user: What the asker did, said, has or is: "did I", "my".
        asks_assistant: What the assistant said: "you recommended", "remind me what you wrote".
        asks_advice: Help or advice wanted now, where the asker's standing wishes should be heard.
        asks_survey: More than one message is needed: counts, lists, orders, summaries.
        asks_asked: What was asked earlier: "what did I ask about", "have I asked you".
        wants_questions: The asker's own earlier questions: "what did I ask about the rent?".
        quoted: What stands between quotation marks, without them.
        names: Runs of capitalised words that are not merely the start of a sentence.
    """

    asks_user: bool = False
    asks_assistant: bool = False
    asks_advice: bool = False
    asks_survey: bool = False
    asks_asked: bool = False
    wants_questions: bool = False
    quoted: tuple[str, ...] = ()
    names: tuple[str, ...] = ()

    @property
    def phrases(self) -> tuple[str, ...]:
        """What is to be found word by word: quotations, and names of more than one word."""
        return (*self.quoted, *(name for name in self.names if " " in name))


def _any_of(*patterns: str) -> re.Pattern[str]:
    joined = "|".join(pattern.replace(" ", r"\s+") for pattern in patterns)
    return re.compile(rf"(?i)\b(?:{joined})")


_TOLD = (
    r"(?:suggested|recommended|mentioned|recalled|listed|provided|created|described|named|quoted|"
    r"explained|outlined|proposed|advised|shared|generated|translated|summari[sz]ed|played|"
    r"included|pointed)\b"
)
_TOLD_IRREGULAR = (
    r"(?:tell|told|say|said|give|gave|wrote|write|made|make|show|shown|came up with|chose)\b"
)
_AUXILIARY = "is|was|are|were|has|have|had|do|does|did|will|would|can|could|might"
_ASKS_USER = _any_of(
    r"(?:did|have|had|was|were|am) I\b",
    r"(?<!how\s)do I\b",
    r"(?:what|which|whom?|where|when|why|how (?!can|could|do|should|might|would)\w+|that|since) "
    r"I(?:'ve|'d|'m| have| had| am| was)? (?!was wondering|want|would|should|could|can\b)\w+",
    r"(?:what|who|where|when|how \w+)(?:'s| is| are| was| were| did| does| do| has| have) my\b",
    r"(?:day|time|date|one|order|last|first|\w{3,}s) (?:that |which )?I (?:\w+ed|had|was|went|got|"
    r"met|saw|took|flew|spent|made|bought|gave|read|began|ate|wrote)\b",
    r"(?:give|gave|take|took|cost) me\b",
    r"I (?:told|asked) you\b",
    r"remind me (?:what|when|where|which|who|how) I\b",
)
_ASKS_ASSISTANT = _any_of(
    rf"you(?:'ve| have| had)? (?:also |just |already |previously |once |earlier )?(?:{_TOLD}|"
    r"(?:told|gave|said|wrote|made|showed|came up with|chose|put together|taught))\b",
    rf"(?:did|have|had|do) you (?:\w+ )?(?:suggest|recommend|mention|propose|advise|list|describe|"
    rf"explain|provide|create|{_TOLD}|{_TOLD_IRREGULAR}|name)",
    r"you were (?:telling|saying|suggesting|recommending|explaining)\b",
    r"your (?:last |previous |earlier |first )?(?:suggestions?|recommendations?|advice|answers?|"
    r"explanations?|repl(?:y|ies)|lists?|examples?|drafts?)\b",
    r"(?:our|the) (?:previous|last|earlier|past) (?:conversation|chat|discussion)\b",
    r"our (?:previous|last|earlier|past) \w+",
    r"(?:we|that we) (?:talked|spoke|chatted|discussed|went over|covered)\b",
)
_ASKS_ADVICE = _any_of(
    r"(?:can|could|would|will) you (?:please |kindly |also |maybe )?(?:suggest|recommend|help"
    r"|advise|show|give|walk|explain|propose|plan|write|draft|make|create|design|teach|guide|find"
    r"|offer)\b(?! me (?:a )?(?:clear |brief |comprehensive |full )*(?:summary|overview|recap))",
    r"any (?:\w+ )?(?:tips|advice|suggestions?|ideas?|recommendations?|thoughts|pointers)\b",
    r"(?:what|which|where|how|when|who) (?:\w+ ){0,3}should I\b",
    r"should I\b",
    r"(?:what|which) (?:\w+ ){0,4}(?:would|do|could) you (?:suggest|recommend|advise|propose)\b",
    r"how would you (?:suggest|recommend|approach|go about)\b",
    r"how (?:can|could|do|might|would|best to) (?:I|we)\b(?! (?:feel|felt|know you|react))",
    r"what (?:can|could|might) I\b",
    r"what(?:'s| is| are) (?:the |a )?(?:best|good|better|ideal|right)\b",
    r"what do you (?:think|say|suggest|reckon)\b",
    r"do you (?:think|have any|recommend|suggest)\b",
    r"(?:recommend|suggest)(?: me)? (?:a|an|some|any|the)\b",
    r"(?:please )?(?:help|advise|teach|show) me\b",
    r"(?:looking for|need|want|like) (?:some |any |a few )?(?:advice|tips|ideas|suggestions|"
    r"recommendations|inspiration|help)\b",
    r"not sure (?:which|what|how|whether|if|where)\b",
    r"what (?:to|shall I|would be)\b",
)
_ASKS_SURVEY = _any_of(
    r"how many\b(?! (?:days|weeks|months|years|hours|minutes) (?:ago|had|have|passed|between|"
    r"before|after|did it take))",
    r"how (?:much|often)\b(?= .*\b(?:total|altogether|overall|in all|combined|all)\b)",
    r"how often\b",
    r"(?:total|average|combined|sum of|altogether|in all)\b",
    r"(?:list|name|enumerate) (?:all|every|the|each|me|my|some|three|four|five)\b",
    r"all (?:the|of|my|our|his|her|their|those|these)\b",
    r"(?:each|every) (?:of|one|time)\b",
    r"(?:what|which) (?:\w+ )?(?:(?:kinds|types|sorts) of\b|(?:kind|type|sort) of \w+[^\Wsu]s\b)",
    r"(?:what|which) are (?:some|all|the (?:different|various|main|names))\b",
    r"(?:different|various|several|multiple) \w+",
    rf"(?:what|which|whose) (?:(?!{_AUXILIARY})\w+ ){{0,2}}?(?!(?:{_AUXILIARY}|this|his|its)\b)"
    rf"\w{{2,}}[^\Wsu]s (?:{_AUXILIARY})\b",
    r"(?:what|where|whom?) (?:has|have) \w+ \w+(?:ed|en|ne)\b",
    r"what are \w+'s? ",
    r"(?:what|which) (?:\w+ ){0,2}?(?:people|children|men|women) (?:have|has|did|do|are|were)\b",
    r"(?:in|the|what|which) (?:chronological )?order\b",
    r"(?:summary|summari[sz]e|overview|recap|sum up)\b",
    r"(?:throughout|across|over) (?:all |our |my |the )?(?:\w+ )?(?:conversations|sessions|chats|"
    r"discussions|messages|requests|questions|months|years)\b",
    r"(?:in common|both|compared? (?:to|with)|more than|older than|difference between)\b",
    r"(?:events|things|places|people|activities|hobbies) (?:that )?(?:have|has|I|he|she|they)\b",
    r"(?:happened|came|come|first), .+ or\b",
)
_ASKS_ASKED = _any_of(
    r"(?:did|do|does|have|has|had|was|were|am|is|are) (?:[\w']+ ){1,4}?ask(?:ed|ing)?\b",
    r"(?:I|we|you|he|she|they)(?:'ve|'d| have| had)? (?:\w+ )?asked\b",
    r"(?:my|our|his|her|their) (?:\w+ )?questions?\b",
    r"(?:what|which|whose|how many|all the|any|the) (?:\w+ )?questions?\b",
)
_WANTS_QUESTIONS = _any_of(
    r"(?:did|have|had) (?:I|we) (?:\w+ )?ask(?:ed)?\b(?! (?:my|our|her|him|them|(?-i:[A-Z])))",
    r"(?:I|we)(?:'ve|'d| have| had)? (?:\w+ )?asked (?:you|about)\b",
    r"(?:my|our) (?:\w+ )?questions?\b",
)

_QUOTED = re.compile(
    r"\"([^\"\n]{1,120})\"|“([^”\n]{1,120})”|«\s?([^»\n]{1,120}?)\s?»"
    r"|(?<!\w)[‘']((?=[^\s\d])[^‘'’\n]{1,120}(?:[’'](?=\w)[^‘'’\n]{1,120})*)[’'](?!\w)"
)
# An initial, a word, or a word with an apostrophe or hyphen within: "O'Neill", "Jean-Luc", "iPad".
_WORD = (
    r"(?:(?:[A-Z]|Dr|Mr|Mrs|Ms|St)\.(?=\s?[A-Z])|(?:[^\W\d_a-zà-öø-ÿ][\w&]*|i[A-Z]\w+)"
    r"(?:['’\-][^\W\d_]{2,}\w*)*)"
)
_NAME = re.compile(
    rf"\b{_WORD}(?:\s+(?:(?:of|de|van|der|von|la|the|&)\s+){{0,2}}{_WORD}|\s+\d{{1,4}}\b)*"
)
_SENTENCE_START = re.compile(r"(?:^|[.!?:;…]\s|\n)[\s\"“‘'(\-]*$")
# Words that open sentences, and those that are capitalised for other reasons.
_OPENERS = frozenset(
    "a about after all also although an and another any anyway are aren't as ask at based because "
    "been before between both but by can can't compare considering could couldn't describe did "
    "didn't do does doesn't don't during each either even ever explain find finally first "
    "following for from get give go going good had has hasn't have haven't he hello help her here "
    "hey hi his how however i i'd i'll i'm i've if in is isn't it it's its just last let let's "
    "list long look looking lately make many may maybe me mention might more most much must my "
    "name need next no not now of ok okay on once one only or other our out over please plan "
    "previously quick recall recently regarding remember remind say seems several shall she should "
    "show since so some sometimes speaking still such suggest summarize summarise tell thank "
    "thanks that that's the their them then there these they thing think this those though through "
    "to today tomorrow tonight too trying two under until up use using very want was wasn't we "
    "we're well were what what's when where where's which while who who's whom whose why will with "
    "within without won't would write yes yesterday yet you you're your".split()
)
_READ_AT_EITHER_END = 1_000  # Characters; the middle of a pasted page is no question.
_CALENDAR = frozenset([*MONTHS, *WEEKDAYS])

_OF_SELF = re.compile(
    r"(?i)\b(?:do|did|am|was|have|had|can|could|should|will|would|must)(?:n['’]t)? i\b"
)
_OF_THE_PAST = re.compile(
    r"(?i)\b(?:used\s+to|previous(?:ly)?|former(?:ly)?|originally|initially|in\s+the\s+past"
    r"|back\s+then|at\s+that\s+time|(?:any\s+|no\s+)(?:more|longer)|anymore|until\s+(?:when"
    r"|recently)|before\s+(?:I|we|he|she|they|that|then|this|moving|changing|\d{4})\b"
    r"|before\s*[?.!]|ever\s+(?:\w+ed|been|had|lived|owned)|how\s+has\s+\w+|history\s+of"
    r"|over\s+the\s+years|(?:old|last|first)\s+(?:job|home|flat|house|address|employer|car|phone"
    r"|name|boss))(?!\w)"
)


def read_intent(question: str) -> Intent:
    """Read what kind of question it is, from the first and last thousand characters."""
    if len(question) > 2 * _READ_AT_EITHER_END:
        question = question[:_READ_AT_EITHER_END] + "\n" + question[-_READ_AT_EITHER_END:]
    text = question.replace("’", "'")
    return Intent(
        asks_user=_ASKS_USER.search(text) is not None,
        asks_assistant=_ASKS_ASSISTANT.search(text) is not None,
        asks_advice=_ASKS_ADVICE.search(text) is not None,
        asks_survey=_ASKS_SURVEY.search(text) is not None,
        asks_asked=_ASKS_ASKED.search(text) is not None,
        wants_questions=_WANTS_QUESTIONS.search(text) is not None,
        quoted=tuple(dict.fromkeys(_quoted(question))),
        names=tuple(dict.fromkeys(_names(_QUOTED.sub(" · ", question)))),
    )


def asks_of_past(question: str) -> bool:
    """Whether its words ask how things were: "Where did I live before?"."""
    return _OF_THE_PAST.search(question) is not None


def asks_of_self(question: str) -> bool:
    """Whether its author is whom it asks about: "Where do I live?", not "Where is my aunt?"."""
    return _OF_SELF.search(question) is not None


def _quoted(question: str) -> Iterator[str]:
    for match in _QUOTED.finditer(question):
        yield next(group for group in match.groups() if group is not None).strip(" ,.")


def _names(question: str) -> Iterator[str]:
    for match in _NAME.finditer(question):
        name = re.sub(r"['’]s?$", "", match[0].rstrip("."))
        words = name.split()
        opens = _SENTENCE_START.search(question, max(0, match.start() - 8), match.start())
        while words and _is_ordinary(words[0], opens=opens is not None):
            words, opens = words[1:], None
        while words and not words[-1][0].isupper() and words[-1].islower():
            words.pop()
        name = " ".join(words)
        if len(name) > 1 and not _is_date(words):
            yield name


def _is_ordinary(word: str, *, opens: bool) -> bool:
    plain = word.lower().replace("’", "'")
    if plain in _OPENERS:
        return opens or plain in ("i", "i'm", "i've", "i'd", "i'll") or word.islower()
    return word.islower()


def _is_date(words: list[str]) -> bool:
    return all(word.lower().rstrip("s") in _CALENDAR or word.isdigit() for word in words)


# Words of questions about the memory itself. A question made of these alone, such as "What did I
# tell you last week?", has no subject that a message could be close to.
_OF_MEMORY = frozenset(
    analyze(
        "ask asked answer chat chatted conversation conversations discuss discussed discussion "
        "hear heard know known mention mentioned message messages talk talked told say said speak "
        "spoke spoken remember remembered remind recall recap memory memories summary summarise "
        "summarize overview list topic topics",
        ENGLISH,
    )
)
# Words of greetings and polite replies, and words that stand for others.
_PLAIN = frozenset(
    analyze(
        "hi hello hey good morning afternoon evening night day dear welcome thank thanks please ok "
        "okay yes yeah yep sure great fine nice cool right more continue go going done happen "
        "happened last latest recent recently ago first next previous earlier later today "
        "yesterday tell tomorrow week weekend month year time give show let again "
        "really maybe also us thing things stuff anything something everything nothing",
        ENGLISH,
    )
)

# Words for the asker and their people. A program asks about "the user".
_OURS = re.compile(
    r"(?i)\b(?:my|mine|our|ours|we|us|the users?)\b"
    r"|\b(?:can|could|do|did|would|have|had|am|was|must|should)(?:not|n['’]t) I\b"
    r"|\b(?:book|buy|choose|cook|pick|plan|recommend|suggest) me\b"
)
_ORDER = re.compile(r"(?i)^\W*(?:please )?(?:give|show|send) me\b")
_SOMEBODY = re.compile(r"(?i)\b(?:he|him|his|she|hers?|they|them|their)\b")


class Question(Protocol):
    """A question that has been read; `terms` are those of the analyzer."""

    @property
    def text(self) -> str: ...

    @property
    def terms(self) -> tuple[str, ...]: ...

    @property
    def time(self) -> TimeIntent: ...

    @property
    def intent(self) -> Intent: ...


def is_personal(query: Question) -> bool:
    """Whether a question is about the user, their people, or what was said."""
    # "Give me five synonyms" is about nobody.
    text = _ORDER.sub("", query.text)
    intent = query.intent if text == query.text else read_intent(text)
    about_us = intent.asks_user or intent.asks_assistant or bool(_OURS.search(text))
    return about_us or _refers_back(text)


def _refers_back(text: str) -> bool:
    """Whether a pronoun stands for a person whom the question itself does not name.

    "Where does she work?" does; "How do bees find their hive?" does not.
    """
    pronoun = _SOMEBODY.search(text)
    return pronoun is not None and not _naming(analyze(text[: pronoun.start()], ENGLISH))


def subject_of(query: Question) -> frozenset[str]:
    """The terms that name the subject of a question; none for "hi" and "what did I say?"."""
    dated = [term for period in query.time.periods for term in analyze(period.text, ENGLISH)]
    return _naming(query.terms) - frozenset(dated)


def _naming(terms: Iterable[str]) -> frozenset[str]:
    return frozenset(terms) - _OF_MEMORY - _PLAIN


def asks_for_all(query: Question) -> bool:
    """Whether a question asks for all memories, of no subject: "what do you know about me?"."""
    intent = query.intent
    of_memory = bool(_OF_MEMORY & set(query.terms)) or intent.asks_user or intent.asks_assistant
    return of_memory and not subject_of(query)


def is_plain(query: Question) -> bool:
    """Whether a message is a greeting or a reply, and no question: "hi", "good morning", "yes"."""
    return not (subject_of(query) or asks_for_all(query) or query.time.periods)
