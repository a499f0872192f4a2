"""Generic frames in which something held ends or is replaced: "the X is history", "no more X".

What stands in a frame may be anything, so a frame alone says nothing: judging acts on it only where
the words are those of a known fact, and of a kind that the frame can end.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_THINGS = "owns drives uses "
_HABITS = "does learns studies takes diet works_on smokes drinks_alcohol plays member_of "
_PLANS = "plans wants "
_PLACES = "lives_in works_at works_as studies_at studies works_on "
_WORKMATES = "reports_to colleague_of lives_with "
_COUPLES = "partner married_to engaged_to "
_HEALTH = "has_condition allergic_to takes "
_TASTES = "likes dislikes prefers opinion "

_FEW = r"[^\s,;:!?()]+(?: [^\s,;:!?()]+){0,3}?"
_X = rf"(?:(?:the|my|our|their|that|this|all the|all my|all their) )?(?P<old>{_FEW})"
_NEW = (
    r"(?:(?:a|an|the|my|our|their|in|at|on|with|called|named) )*"
    r"(?P<new>(?!(?:it|that|this|them|him|her|me|you|us|they|he|she|all|time|fine|better)\b)"
    rf"{_FEW})"
)
_WHO = r"(?:I|[Ww]e|[Tt]hey|User)"
_START = (
    r"(?:\A(?:(?i:so|well|yes|yep|sadly|finally|update|turns out|it turns out)[,:]? (?:that )?)?"
    r"|[,;:.!–—-] ?|\b(?:and|but|so|now|that) )"
)
_EAGER = r"(?:(?:all|now|finally|officially|definitely|long|well and truly|just|also|then) ){0,2}"
_WHEN = (
    r"(?:(?:last|this) (?:week|weekend|month|year|spring|summer|autumn|winter)|yesterday"
    r"|(?:on|in) [A-Z]\w+)"
)
_END = (
    rf"(?=\s*(?:\Z|[,;:.!()–—]|(?:for (?:me|us|them|good)|now|at last|since|because|after all"
    rf"|please|these days|altogether|too|and (?:I|we|they|so)|so|but|{_WHEN})\b))"
)
_SORT = r"(?: thing| phase| life| days| business| chapter)?"
_OVER = r"(?:over|done|history|kaput|no more|behind (?:me|us|them)|(?:a thing of|in) the past)"
_DID = rf"(?:{_START}|\b{_WHO} (?:have |had to |had )?){_EAGER}"
# Who goes on: "the cat lives with my sister now".
_OTHERS = r"(?:my|our|their|a|an|the) (?:\w+ ){0,2}?\w+|[A-Z]\w+"

_FRAMES: tuple[tuple[str, str], ...] = (
    (
        rf"{_START}(?:so )?[Nn]o more {_X}(?=\s*(?:\Z|[,;:.!()–—]"
        r"|(?:for (?:me|us|them)|please|since|because|from now|these days)\b))",
        _THINGS + _HABITS + _TASTES,
    ),
    (
        rf"(?:{_START}|\b{_WHO} (?:am|are|is|do|does|have) )(?i:not|no longer)"
        rf" (?:(?:\w+ ){{0,2}}?(?:in|at|on|with|into|of|using|taking|doing|learning|a|an) )?{_X}"
        r" any ?(?:more|longer)\b",
        _THINGS + _HABITS + _PLACES + _PLANS + _WORKMATES + _COUPLES,
    ),
    (
        rf"(?:{_START}|\b{_WHO} (?:am|are|is) )[Nn]o longer (?:in|at|on|with|into|a|an) {_X}{_END}",
        _THINGS + _HABITS + _PLACES + _WORKMATES + _COUPLES,
    ),
    (
        rf"{_START}{_X}{_SORT} (?:is|are|was|were) {_EAGER}{_OVER}{_END}",
        _THINGS + _PLACES + _PLANS + _TASTES + "takes ",
    ),
    # "The run is over" is said of one of them.
    (
        rf"{_START}(?!(?i:the|my|our|their|that|this)\b)(?P<old>{_FEW}){_SORT}"
        rf" (?:is|are|was|were) {_EAGER}{_OVER}{_END}",
        _HABITS,
    ),
    (
        rf"{_START}{_X}(?: thing| idea| plan)? (?:is|are|was|were|got|has been) {_EAGER}"
        rf"(?:off|cancelled|canceled|called off|scrapped|not happening|dead)(?! to\b){_END}",
        _PLANS + "learns studies does ",
    ),
    (
        rf"{_START}{_X} (?:fell through|(?:has|have) fallen through|(?:did|does) not (?:stick|last"
        rf"|work out|agree with (?:me|them))|is not happening){_END}",
        _PLANS + _HABITS + "uses ",
    ),
    # "Piano sold", "the gym: cancelled".
    (
        rf"{_START}{_X}(?:,|:)? (?:(?:is|are|has|have|was|were|got|been|now|all|finally) ){{0,3}}"
        rf"(?:sold|rehomed|binned|scrapped|ditched|dropped|given away|in the bin|on e[Bb]ay){_END}",
        _THINGS + _HABITS + "has_pet ",
    ),
    (
        r"(?:\A|[.!,] )(?i:bye[- ]bye|bye|goodbye|farewell|so long|adieu|RIP),? (?:to )?"
        rf"{_X}{_END}",
        _THINGS + _HABITS + _PLACES,
    ),
    (
        rf"{_DID}(?:(?i:decided) against|(?i:said) no to|(?i:pulled) the plug on|(?i:called)"
        rf" time on|(?i:turned) my back on) {_X}{_END}",
        _THINGS + _HABITS + _PLANS + _PLACES,
    ),
    (
        rf"{_DID}(?:[Ll]et {_X} (?:drop|go|slide|lapse))\b",
        _HABITS + _PLANS + _THINGS,
    ),
    (
        rf"{_DID}(?:[Ff]ound a (?:buyer|taker|new (?:home|owner)) for|(?i:got) shot of|[Rr]ehomed"
        rf"|[Pp]awned|[Ww]rote off|[Cc]hucked(?: out)?|[Cc]rashed) {_X}{_END}",
        _THINGS + "has_pet ",
    ),
    (rf"{_DID}(?:[Gg]ave|[Pp]assed|[Hh]anded) {_X} (?:away|back|in|on|over|to)\b", _THINGS),
    (
        rf"{_START}{_X} (?:went|has gone|have gone) (?:to (?:the (?:scrap\w*|tip|dump|skip"
        r"|breakers?|charity shop|knacker\w*)|a new (?:home|owner)|(?:my|our|their) [\w-]+)|too)\b",
        _THINGS,
    ),
    (
        rf"{_START}{_X} (?:(?:has|have|got) (?:a new|another) (?:owner|home)"
        rf"|(?:has |have )?found a (?:buyer|new (?:owner|home))|belongs? to (?:{_OTHERS}) now"
        rf"|(?:is|are|lives?) with (?:{_OTHERS}) now)\b",
        _THINGS + "has_pet ",
    ),
    (rf"(?:{_START}|\b{_WHO} (?:am|are|is) )(?:[Oo]ut of|[Oo]ff) {_X}{_END}", _HABITS + _PLACES),
    (
        rf"{_START}{_X} (?:has |have )?(?:left(?! (?:me|them|us)\b)|retired|resigned|quit|moved"
        rf" out)(?: (?:the|our|their) (?:company|team|firm|flat|house))?{_END}",
        _WORKMATES,
    ),
    (
        rf"{_START}{_X} and (?:I|them|they)(?: (?:are|have))?(?: (?:now|just))? (?:split|separated"
        r"|divorced|broken|broke|through|finished|no longer|not)\b",
        _COUPLES,
    ),
    (
        rf"{_START}{_X} (?:(?:is|are|has|have) )?{_EAGER}(?:fully |completely )?(?:gone|healed"
        rf"|cured|cleared up|in remission|right as rain|(?:better|fine) (?:again|now)){_END}",
        _HEALTH,
    ),
)
_WRONG: tuple[tuple[str, str], ...] = (
    (
        rf"{_START}{_X}(?: thing| allergy| story)? (?:was|is|were) never (?:real|true|mine|theirs"
        rf"|so|a thing|one){_END}",
        _HEALTH + _THINGS + _HABITS,
    ),
    (
        r"\b(?:[Ff]orget|[Ss]cratch|[Ii]gnore|[Dd]isregard|[Rr]evoke)"
        r" (?:(?:what|everything|all) (?:I|they) (?:have )?(?:said|wrote) (?:about|of|on) )?"
        rf"{_X}(?: thing)?{_END}",
        _THINGS + _HABITS + _PLANS + _TASTES + _HEALTH,
    ),
)
_NOW = r"(?: now| these days| instead)?"
_REPLACING: tuple[tuple[str, str], ...] = (
    (
        rf"{_DID}[Rr]enamed {_X},?(?: to| as| (?:and |so )?(?:it|he|she) is(?: now)?(?: called)?)"
        rf" {_NEW}{_NOW}{_END}",
        _THINGS + "has_pet works_on ",
    ),
    (
        rf"{_START}{_X} (?:is|has been|was) (?:now )?(?:called|named|renamed(?: to)?)"
        rf" {_NEW} (?:now|these days){_END}",
        _THINGS + "has_pet works_on ",
    ),
    (
        rf"\b(?:in|on|at|use|using|take|taking|have|got|it is|with) {_NEW}(?: now)? instead of"
        rf" {_X}{_END}",
        _THINGS + _HABITS + _PLACES,
    ),
    (
        rf"{_DID}(?:moved|switched|gone|went|changed)(?: on| over)? from {_X} (?:over )?to"
        rf" {_NEW}{_END}",
        _THINGS + _HABITS + _PLACES,
    ),
    (rf"{_START}{_NEW} instead of {_X}{_END}", "takes uses diet "),
    (
        rf"{_START}(?!(?:I|We|They|User)\b)(?P<new>[A-Z]\w+) (?:has )?(?:replaced|took over from)"
        rf" {_X}{_END}",
        _WORKMATES,
    ),
    (rf"{_START}{_X} (?:made|gave) way (?:for|to) {_NEW}{_END}", _THINGS + _HABITS),
)


@dataclass(frozen=True, slots=True)
class HeldChange:
    """What a frame says of the words in it.

    Attributes:
        old: What ends, in its own words.
        kinds: The predicates of the facts that the frame can end.
        new: What takes its place; empty if nothing does.
        wrong: It was never so.
    """

    old: str
    kinds: frozenset[str]
    new: str = ""
    wrong: bool = False


_COMPILED = tuple(
    (re.compile(pattern), frozenset(kinds.split()), wrong)
    for frames, wrong in ((_REPLACING, False), (_WRONG, True), (_FRAMES, False))
    for pattern, kinds in frames
)
# "Lyon is history, it is Nantes now": what stands behind the frame takes its place.
_FOLLOWS = re.compile(
    rf"\s*[,;:–—-]+ (?:and |so )?(?:it is|{_WHO} (?:am|are)|now)(?: now| all)? {_NEW}{_NOW}{_END}"
)
# One of these words is in whatever a frame finds; looking for them first is much quicker.
_SIGNS = frozenset(
    "more longer over done history behind past off cancelled canceled called scrapped happening"
    " dead"
    " fell fallen stick last work agree drop go slide lapse found shot rehomed pawned wrote chucked"
    " crashed gave passed handed went gone owner home buyer belongs belong with out left retired"
    " resigned quit moved and healed sold binned ditched dropped bin ebay bye goodbye farewell long"
    " adieu rip against plug time turned"
    " cured cleared remission right better fine never forget scratch"
    " ignore disregard revoke back renamed named instead switched changed replaced took way".split()
)
_WORD = re.compile(r"[a-z]+")
# A longer sentence is about more than that.
_LONGEST = 160


def held_changes_in(text: str) -> Iterator[HeldChange]:
    """Whatever the frames find in a sentence, replacements first."""
    if len(text) > _LONGEST or _SIGNS.isdisjoint(_WORD.findall(text.lower())):
        return
    for pattern, kinds, wrong in _COMPILED:
        found = pattern.search(text)
        if found is not None:
            follows = found if "new" in pattern.groupindex else _FOLLOWS.match(text, found.end())
            yield HeldChange(found["old"], kinds, follows["new"] if follows else "", wrong)
