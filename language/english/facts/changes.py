"""Sentences that end, replace or take back what is known: a lexicon of verbs and shared frames.

A verb belongs to a class, and every verb of a class fits the frames of that class: "I sold the
van", "the van was sold", "no longer have the van". A new verb is one more word in a list.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from language.english import words
from language.english.facts.people import PLURALS, RELATIONS
from language.english.facts.verbs import FORMS, gerund, past
from language.english.facts.vocabulary import ALLOWS, IS_GONE, IS_WELL, NOT_NAMES, is_first_name

# Not among the verbs of statements, so that a text is not split into clauses at them.
_IRREGULAR = {
    "steal": ("stole", "stolen"), "throw": ("threw", "thrown"), "wind": ("wound", "wound"),
    "withdraw": ("withdrew", "withdrawn"), "outgrow": ("outgrew", "outgrown"),
    "nick": ("nicked", "nicked"), "scrap": ("scrapped", "scrapped"), "bin": ("binned", "binned"),
    "sack": ("sacked", "sacked"), "sub": ("subbed", "subbed"), "total": ("totalled", "totaled"),
    "rid": ("rid", "ridden"), "cancel": ("cancelled", "canceled"),
    "bid": ("bade", "bidden"), "send": ("sent", "sent"), "split": ("split", "split"),
    "shut": ("shut", "shut"), "let": ("let", "let"), "write": ("wrote", "written"),
}  # fmt: skip

# "Done with keto": a state in which one is after ending something.
_RID = r"(?:(?:done|finished|through|over|fed up) with|sick of) "
# What one stopped doing: the verb itself says little.
_LIGHT = (
    r"(?:do|play|go to|learn|take|use|drink|eat|study|practi[sc]e|attend|work on|see|own|have|keep"
    r"|need|watch|follow|wear|ride|drive|run|teach|shop at|buy from)"
)
_LIGHT_ING = (
    r"(?:doing|playing|going to|learning|taking|using|drinking|eating|studying|practi[sc]ing"
    r"|attending|working on|seeing|having|keeping|watching|following|wearing|riding|driving"
    r"|running|teaching)"
)
# What others do to one's things, so that they are gone.
_LOSING = "steal nick pinch total sell cancel scrap donate demolish discontinue"
# What happens to a thing by itself, and it is gone.
_GOES = (
    r"(?:(?:has |have )?(?:died(?! on)|gone for good|bit the dust)"
    r"|(?:is|are|was|were) (?:no more|history|kaput)"
    r"|(?:is|are) (?:finally |now |all )*(?:off|over)(?= ?(?:\Z|[,;:.!]|now\b)))"
)
# Somebody who does so is tired, or off on a journey.
_THING_GOES = (
    r"(?:has |have )?(?:packed up|conked out|gave up(?= ?(?:\Z|[,;:.!]))|given up the ghost"
    r"|fallen through|folded)"
)
_REPLACING_BY = "swap trade exchange ditch drop change switch sub leave quit"
_REPLACING_TO = "switch change convert migrate move upgrade downgrade transfer shift step jump"
# Its new thing follows "with" or "by"; after "swapped seats with" stands a person.
_REPLACE = "replace"

_NOUN = (
    r"(?!(?:it|that|this|them|him|her|me|you|us|all|everything|anything|much|there|to|from|up)\b)"
)
FEW = r"[^\s,;:!?()]+(?: (?!not |but |to |for |with )[^\s,;:!?()]+){0,3}?"
END = (
    r"(?=\s*(?:[,;:!?()]|\.\s|\.?\Z|\s[–—-]+\s|\s(?:now|because|since|so|and|but|I|we|as|actually"
    r"|sorry|today|these days|instead|this|last|for good|at|in|after|from|when|while|any|yesterday"
    r"|on|two|three|a (?:week|month|year|while)|weeks|months|years|altogether|again|entirely"
    r"|completely|before|back)\b))"
)
PREP = r"(?:(?:in|at|on|for|with|by|as|called|named|spelt|spelled|the|an?|my|our|one|with an?) )*"
_EAGER = (
    r"(?:(?:finally|just|recently|now|completely|officially|already|also|both|so|even|have|has"
    r"|had) )*"
)
# "Never quit Bosch" advises.
_NOBODY = r"(?!(?:Never|Not|Nobody|Almost|Nearly|Please|Always|Tell|If) )"
_WHO = (
    rf"(?:{_NOBODY}\b(?:I|we|User|he|she|they|(?:[Mm]y|[Oo]ur) [\w-]+|(?-i:[A-Z]\w+))(?: and I)? "
    r"|\A)"
)


# No such word may stand before the verb: it denies what follows, or makes it a mere possibility.
_NOT_SO = (
    "".join(
        rf"(?<!\b{word} )"
        for word in "not never nobody Nobody nearly almost would could will to if".split()
    )
    + r"(?<!n't )"
)


def _parts(verb: str) -> tuple[set[str], str, str, str]:
    """Its past forms, its base form and the one in -ing, and what follows each."""
    lemma, _, rest = verb.strip().partition(" ")
    if lemma in _IRREGULAR:
        done = set(_IRREGULAR[lemma])
    else:
        done = {past(lemma), *FORMS.get(lemma, ("", past(lemma), past(lemma)))[1:3]}
    return done, lemma, gerund(lemma), f" {rest}" if rest else ""


def _one_of(words: Iterable[str]) -> str:
    return "|".join(sorted(set(words), key=len, reverse=True))


def _done(verbs: Iterable[str]) -> str:
    """A pattern of what was done, or is as good as done: "quit", "had to quit", "am quitting"."""
    parts = [_parts(verb) for verb in verbs]
    was = _one_of(form + rest for forms, _, _, rest in parts for form in forms)
    base = _one_of(lemma + rest for _, lemma, _, rest in parts)
    doing = _one_of(ing + rest for _, lemma, ing, rest in parts if lemma not in _TAKE_A_WHILE)
    return (
        rf"(?:{was}|(?:had|have|decided|chose) to (?:{base})"
        rf"|(?:am|are|is|ended up) (?:now |finally )?(?:{doing}))"
    )


def _pasts(verbs: str, at: int = 0) -> str:
    """The past forms of verbs, or at 1 their participles."""
    return _one_of((_IRREGULAR.get(verb) or (past(verb), past(verb)))[at] for verb in verbs.split())


# Of "I'm selling the house" the house is mine yet.
_TAKE_A_WHILE = frozenset({"sell", "leave", "close", "return"})
# Verbs whose object is had, done or liked no longer; "~" parts a particle that may follow it.
_VERBS = sorted(words("ending_verbs"))
_PARTED = [verb.split("~") for verb in _VERBS if "~" in verb]
_O = rf"{PREP}(?P<o>{_NOUN}{FEW})"
_MINE = r"(?:[Mm]y|[Oo]ur|[Tt]he)"
# "My brother went to my parents": neither he nor a brother is over.
_PEOPLE = [
    *(role for role, of in RELATIONS.items() if not of.animal),
    *(many for many, one in PLURALS.items() if not RELATIONS[one].animal),
]
_SOMEBODY = rf"(?:[\w-]+ ){{0,2}}(?:{_one_of(_PEOPLE)}|family|parents|boss|team)\b"
_ANYONE = rf"(?:[\w-]+ ){{0,2}}(?:{_one_of((*RELATIONS, *PLURALS))})\b"
_NOBODYS = rf"(?!{_SOMEBODY}){_NOUN}"
_ENDED = tuple(
    re.compile(pattern)
    for pattern in (
        rf"(?i){_WHO}{_EAGER}{_done(verb.replace('~', ' ') for verb in _VERBS)} (?:on )?{_O}{END}",
        rf"(?i){_WHO}{_EAGER}{_done(verb for verb, _ in _PARTED)} (?:the|my|our|all the)"
        rf" (?P<o>{_NOUN}{FEW}) (?:{_one_of(particle for _, particle in _PARTED)})\b",
        rf"(?i){_WHO}(?:am |are |is )?{_EAGER}{_RID}{_O}{END}",
        rf"(?i){_WHO}{_EAGER}no longer {_LIGHT} {_O}{END}",
        rf"(?i){_WHO}(?:am|is|are) not (?:with|at|in|on) {_O} any ?(?:more|longer)\b",
        rf"(?i)(?:\A|[,;:.] )(?:but |and |so |now |ok |okay )*{ALLOWS} (?P<o>{FEW}) again\b",
        rf"(?i){_WHO}{_EAGER}(?:do|does) not {_LIGHT} {_O} any ?(?:more|longer)\b",
        rf"(?i){_WHO}{_EAGER}stop(?:ped)? (?:{_LIGHT_ING} |(?=\w+ing\b)){_O}{END}",
        rf"(?i){_WHO}{_EAGER}(?:am|is|are|came|got) back from {PREP}(?P<o>(?:[\w-]+ )?"
        rf"(?:leave|sabbatical|furlough)){END}",
        rf"(?i){_WHO}{_EAGER}(?:decided|chosen|chose) (?:not to|against) {_O}(?: after all|{END})",
        rf"(?i){_WHO}(?:am|are) not (?P<o>(?!going|moving|flying|travell){_NOUN}\w+ing(?: (?:to"
        rf"|in) {FEW})?) (?:after all"
        rf"|any ?more)\b",
        rf"(?i){_WHO}{_EAGER}knocked (?:(?:the|my|our) )?{_O} on the head\b",
        rf"(?i)\b(?:took|taken|weaned) me off(?: of)? {_O}{END}",
        rf"(?i){_WHO}{_EAGER}(?:gave|given) (?:my|our|the) {_O} (?:away\b|to (?:charity|(?:my"
        rf"|our) [a-z]+|(?-i:[A-Z])\w+)(?=\Z|[,;:.]))",
        rf"(?i){_WHO}(?:am|are) not (?:going|moving|flying|travelling) (?:to |on "
        rf"|in )?{_O} (?:after all|any ?more|in the end)\b",
        rf"(?i){_WHO}{_EAGER}stopped (?:the|my|our) (?!car|bus|van|train|bike|truck|clock|timer"
        rf"|music|server|service|process|job\b){_O}{END}",
        r"\A(?P<o>[A-Z]\w+(?: [A-Z]\w+)?) (?:turned me down|rejected me|did not take me"
        r"|said no to me)\b",
        rf"(?:\A|[,;:.] |\band ){_MINE} (?P<o>{_NOBODYS}{FEW}) (?:went|moved|has gone"
        rf"|have gone) (?:in with"
        r"|to live with|to) (?:an?|my|our|the) (?:new |good )?(?:cousin|aunt|uncle|sister|brother"
        r"|mum|mom"
        r"|dad|parents|friend|neighbour|neighbor|home|family|shelter|farm|son|daughter|nephew"
        r"|niece)s?\b(?!'|’| (?:for (?:the|a|an|some|one|two|three|lunch|dinner|tea)|tonight|today"
        r"|yesterday|this|on|last|at|until|till|to|after|before)\b)",
        rf"(?i){_WHO}did not renew (?:my|our|the) (?P<o>{_NOUN}{FEW})(?=\Z|[,;:.]| this| for)",
        rf"(?i){_WHO}(?:have )?let (?:my|our|the) (?P<o>{_NOUN}{FEW}) (?:lapse|expire|run out)\b",
        rf"(?i)\A(?P<o>{_NOUN}{FEW}) (?:did not|is not|has not|was not) work(?:ed"
        rf"|ing)?(?: out)? for (?:me|us)\b",
        rf"(?i)\A[Nn]o more (?P<o>{_NOUN}{FEW}) for (?:me|us)\b",
        rf"(?i){_WHO}did not get (?:the|that) (?:job|place|position|role|gig|flat|house) (?:at"
        rf"|with|in) {_O}{END}",
        r"\A(?:Scrap|scrap|Forget|forget) (?:the |our |my )?(?P<o>[A-Z]\w+(?: [A-Z]\w+)?)(?: trip"
        r"| plan| move| idea| holiday| job| thing)(?=\Z|[,;:.])",
        # Instructions to the assistant.
        r"(?i)\b(?:no need (?:to|for)|you (?:do not (?:have|need) to|need not)) (?:be (?:so )?)?"
        r"(?P<o>[^,;]{3,40}?)(?: with me)? any ?(?:more|longer)\b",
        rf"(?i)\byou (?:can|may) (?:now )?stop (?:giving|adding|putting|{_LIGHT_ING}) {_O}{END}",
        rf"{_NOT_SO}\b(?:{_pasts(_LOSING)}) (?:my|our) (?P<o>{_NOUN}{FEW}){END}",
        rf"(?:\A|[,;:.] |\band )(?:[Mm]y|[Oo]ur|[Tt]he(?= [A-Z])) (?P<o>{_NOUN}{FEW}) (?:was|were"
        rf"|got|has been"
        rf"|have been|is|are) (?:just |all |finally |now )?(?:{_pasts(_LOSING, 1)}|put down"
        rf"|written off|torn down|given away|shut down|closed down)\b",
        rf"(?:\A|[,;:.] |\band )[Tt]he (?P<o>{_NOUN}{FEW}) (?:has|have) been (?:finally |now )?"
        rf"(?:{_pasts(_LOSING, 1)})\b",
        rf"(?:\A|[,;:.] |\band ){_MINE} (?P<o>{_NOUN}{FEW}) (?:{_GOES}|{IS_WELL})",
        rf"(?:\A|[,;:.] |\band ){_MINE} (?P<o>[a-z-]+(?: [a-z-]+){{0,2}}) {IS_GONE}",
        rf"(?:\A|[,;:.] |\band ){_MINE} (?P<o>(?!{_ANYONE}){_NOBODYS}{FEW}) {_THING_GOES}",
    )
)
_VIEW_TAKEN_BACK = re.compile(
    rf"(?i)(?:\b(?:take|took|taking) (?:it |that )?(?:all )?back,? (?:(?:what|everything|all) I "
    rf"(?:have )?said )?|\bI (?:was|have been) (?:so |completely |totally )?wrong "
    rf"(?=about (?:the|my|our) ))(?:about|of) {_O}{END}"
)
_TAKEN_BACK = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"{_NOT_SO}\b(?:forget|ignore|scratch|disregard|delete|never mind|scrap) (?:(?:what"
        rf"|everything|all|anything) I (?:have )?(?:said|told you|wrote|mentioned) |that "
        rf"|that thing |the bit |the thing )about {_O}{END}",
        rf"\A(?:the|that) (?P<o>{_NOUN}{FEW}) (?:thing )?was (?:only |just )?"
        r"(?:a joke|not true|made up|nonsense|a lie|a fib)\b",
    )
)
# What may follow the end of a relation, or somebody lost; not "in the park", nor "the bill".
SINCE_WHEN = (
    r"(?=\s*(?:\Z|[,;:.!()–—]|(?:(?:last|this|after|when|because|so|but|now|recently|yesterday"
    r"|today|tonight|amicably|for good|(?:over|at) the weekend|earlier|(?:back )?in (?:(?:19"
    r"|20)\d\d|[A-Z]\w+)|on [A-Z]\w+day"
    r"|(?:an?|two|three|four|five|six|some|a few|\d+) (?:days?|weeks?|months?|years?|while))\b)))"
)
_TOGETHER = (
    r"(?:together|married|engaged|a couple|an item|dating|partners|friends|flatmates|housemates"
    r"|roommates|seeing each other|talking|speaking|on speaking terms)"
    r"(?: (?:to|with) each other)?(?: any ?(?:more|longer))?"
)
_OF_HOME = r"(?: of (?:my|our|the) (?:flat|house|apartment|place|home|room))?"
_PARTNERS = re.compile(
    rf"\bput (?P<down>[A-Z]\w+) (?:down|to sleep){SINCE_WHEN}|\bsaid goodbye to (?P<bye>[A-Z]\w+)"
    rf"{SINCE_WHEN}|\blost (?P<lost>[A-Z]\w+){SINCE_WHEN}|\b(?P<out>[A-Z]\w+) (?:has "
    rf"|have )?(?:just )?(?:moved out{_OF_HOME}{SINCE_WHEN}|left me\b(?! (?:an?|the|my"
    rf"|some|this|to|at|in|on|with|alone|behind)\b)|dumped me\b|is gone{SINCE_WHEN}"
    r"|broke up with me\b)"
    rf"|(?:\A|[,;:.] |\band )(?P<off>[A-Z]\w+)(?:'s"
    rf"| is) (?P<how>off|out|history|over|no more)(?=\s*(?:\Z|[,;:.!]))"
    rf"|\b(?P<and>[A-Z]\w+) and I (?:have |are |have now )?(?:just |finally |now )?(?:(?:split"
    rf"|broke|broken)(?: up)?{SINCE_WHEN}|separated{SINCE_WHEN}"
    rf"|called it quits|called it a day{SINCE_WHEN}|(?:no longer|not) (?:really "
    rf"|exactly )?{_TOGETHER}{SINCE_WHEN})"
)
_LEFT = re.compile(r"\bleft |\bdropped |\bleave |\bdrop ")
_FOR_NOW = re.compile(
    r"(?i) (?:early|late|behind|outside|inside|upstairs|downstairs|there|here|unlocked|unattended"
    r"|open|(?:at|around|before|after|by) (?:home|work|noon|midnight|lunch|dawn|night|the|my|our"
    r"|his|her|\d{1,2}\b(?!\d)|half|(?-i:[A-Z])[\w-]+'s|one|two|three|four|five|six|seven|eight"
    r"|nine|ten|eleven|twelve)|(?:in|on|under) (?:the|my|our|his|her|a) (?!end\b)|with |next to"
    r"|this (?:morning|afternoon|evening)|tonight|for (?:the|an?) (?:[\w-]+ )?(?:weekend|week|day"
    r"|night|few|conference|meeting|holiday|trip|wedding|funeral|course|match|concert))\b"
)
# "My iPhone was stolen but I got it back", "my laptop died, I forgot to charge it".
_THERE_AGAIN = re.compile(
    r"(?i) (?:died|stolen|nicked|pinched)\b.*(?:\bback\b(?! in\b)|\bcharg|\bbatter(?:y|ies)\b|\bfix"
    r"|\brepair|\bgarage\b|\bfound\b|\bturned up\b|\bstarted again\b)"
)
# "I dropped the guitar" broke it; "I dropped the guitar lessons" ended them.
_LET_FALL = re.compile(r"(?i)\bdropp(?:ed|ing) (?:the|my|our|an?) \Z")
_HABIT = re.compile(
    r"(?i)(?:ing|lessons?|class(?:es)?|courses?|subject|module|diet|routine|habit|plans?|idea"
    r"|project|hobby|sport|membership|subscription|sessions?|practice|therapy|gym|club|job|shifts?"
    r"|PhD|degree|thesis|dose|pills|tablets|medication|antibiotics|supplements)\Z"
)
# "Ana is out" for the evening; "Kyoto is out" for good.
_AWAY = frozenset({"off", "out", "over"})
_NEW = rf"{PREP}(?P<new>{_NOUN}{FEW}){END}"
_OLD = rf"{PREP}(?P<old>{FEW})"
_REPLACED = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"{_WHO}(?:\w+ly )?{_EAGER}(?:went|{_done(_REPLACING_TO.split())})"
        rf"(?: (?:all )?(?:my|our) [a-z]+(?: [a-z]+)?)?(?: over| back| up| down)?"
        rf" from {_OLD} (?:over )?(?:to|onto) {_NEW}",
        rf"{_WHO}(?:\w+ly )?{_EAGER}(?:{_done(_REPLACING_TO.split())})(?: [\w-]+)?(?: over| back)?"
        rf" to {PREP}(?P<new>{_NOUN}{FEW}) from {PREP}(?P<old>{_NOUN}{FEW}){END}",
        rf"{_WHO}(?:\w+ly )?{_EAGER}(?:{_done(_REPLACING_BY.split())})(?: in| out)?"
        rf" {_OLD} (?:for|in favou?r of) {_NEW}",
        rf"{_WHO}(?:\w+ly )?{_EAGER}(?:{_done([_REPLACE])}) {_OLD} (?:with|by) {_NEW}",
        rf"\b(?:on to|got|have|use|using|bought|it is) {PREP}(?P<new>{FEW}) (?:now )?instead of "
        rf"{PREP}(?P<old>{FEW}){END}",
    )
)
_FOLLOWS = re.compile(
    rf"(?i)[,;:.] (?:and |so |but |instead )*(?:now )?(?:it is|its)(?: all)? (?:now )?{PREP}"
    rf"(?P<new>{_NOUN}{FEW}) (?:now|instead|these days)\b"
)
_A_THING = re.compile(r"(?i)\b(?:for|to) (?:an? |my |the |this )(?:[\w-]+ ){0,2}?\Z")
_OWNING = re.compile(r"(?i)(?:swap|trad|replac|exchang|upgrad|downgrad)")


@dataclass(frozen=True, slots=True)
class Replacement:
    """
    Attributes:
        thing: It is something that one has: "traded the Corolla for a Volvo".
    """

    old: str
    new: str
    thing: bool = False


def replaced_in(text: str) -> Replacement | None:
    """What takes the place of what: "went from Notion to Obsidian"."""
    for pattern in _REPLACED if _may(text, _SIGNS_OF_REPLACING) else ():
        found = pattern.search(text)
        if found is not None:
            if _LEFT.search(found[0]) and is_for_now(text[found.end("old") :]):
                return None
            determined = _A_THING.search(text[: found.start("new")]) is not None
            thing = determined and _OWNING.search(found[0]) is not None
            return Replacement(found["old"], found["new"], thing)
    return _followed_in(text)


def _followed_in(text: str) -> Replacement | None:
    """What comes after what is given up: "dropped Portuguese, it is Italian now"."""
    follows = _FOLLOWS.search(text)
    old = ended_in(text[: follows.start()]) if follows else ""
    return Replacement(old, follows["new"]) if follows and old else None


def may_change(message: str) -> bool:
    """A cheap look whether a message, if short, may end or take back something."""
    return len(message) < _SHORT and _may(message, _SIGNS_OF_ENDING | _SIGNS_OF_TAKING_BACK)


def ended_in(text: str) -> str:
    """What is said to be given up, gone or lost; empty where nothing is."""
    found = _match(_ENDED, text) if _may(text, _SIGNS_OF_ENDING) else None
    if found is None:
        return ""
    verb = text[found.start() : found.start("o")]
    if _LEFT.search(verb) and (verb.endswith(" for ") or is_for_now(text[found.end("o") :])):
        return ""
    if "one of " in text[found.start() : found.end()] or _THERE_AGAIN.search(text):
        return ""
    return "" if _LET_FALL.search(verb) and not _HABIT.search(found["o"]) else found["o"]


def is_for_now(after: str) -> bool:
    """Whether what is left is gone back to: "I left work early", "left the bike at home"."""
    return _FOR_NOW.match(after) is not None


def taken_back_in(text: str) -> str:
    """What was said, and is not so: "forget that about Everton"; empty where nothing is."""
    return _first(_TAKEN_BACK, text) if _may(text, _SIGNS_OF_TAKING_BACK) else ""


def view_taken_back_in(text: str) -> str:
    """On what a view is taken back: "I take back what I said about the desk"; or empty."""
    return _first((_VIEW_TAKEN_BACK,), text) if " back" in text or " wrong" in text else ""


def parted_from(text: str) -> str:
    """The name of somebody who is with the speaker no longer; empty where nobody is."""
    lost = _PARTNERS.search(text)
    if lost is None:
        return ""
    name = next(said for which, said in lost.groupdict().items() if said and which != "how")
    away = lost["how"] in _AWAY and is_first_name(name)
    return "" if away or name in NOT_NAMES else name


def _match(patterns: Iterable[re.Pattern[str]], text: str) -> re.Match[str] | None:
    return next(filter(None, (pattern.search(text) for pattern in patterns)), None)


def _first(patterns: Iterable[re.Pattern[str]], text: str) -> str:
    found = _match(patterns, text)
    return found["o"] if found else ""


def _signs(verbs: Iterable[str]) -> frozenset[str]:
    """The first words of their forms."""
    parts = [_parts(verb.replace("~", " ")) for verb in verbs]
    return frozenset(form for forms, lemma, ing, _ in parts for form in (*forms, lemma, ing))


# One of these words is in whatever the frames find; looking for them first is much quicker.
_SIGNS_OF_ENDING: Final = _signs([*_VERBS, *_LOSING.split()]) | frozenset(
    "done finished through over sick fed longer stopped off died dead gone more packed given bit"
    " back fallen folded history kaput any took weaned knocked put torn stop gave given get"
    " forget renew let work decided chosen chose again turned rejected moved went"
    " conked healed cured cleared".split()
)
_SIGNS_OF_REPLACING: Final = _signs(f"{_REPLACING_BY} {_REPLACING_TO} {_REPLACE}".split()) | {
    "replaces", "place", "instead", "went",
}  # fmt: skip
_SIGNS_OF_TAKING_BACK: Final = frozenset(
    "forget ignore scratch disregard delete mind scrap joking kidding lying wrong mistaken lied"
    " joke true made nonsense lie fib".split()
)
_WORD = re.compile(r"[a-z]+")
# A longer message without an "I" or "my" is about something else.
_SHORT = 160


def _may(text: str, signs: frozenset[str]) -> bool:
    return not signs.isdisjoint(_WORD.findall(text.lower()))
