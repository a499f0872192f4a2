"""What is said in passing without a plain clause: "been vegetarian for years", "back on insulin".

Each form serves many sentences and holds one closed kind of thing; it is put as a clause in full.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from language.english.facts.changes import NOT_SO
from language.english.facts.people import RELATIONS
from language.english.facts.personal_names import is_first_name, may_be_name
from language.english.facts.phrasing import article
from language.english.facts.sentences import spelt_out
from language.english.facts.vocabulary import DIET, MEDICINE, role_in

# Elsewhere in a sentence they go on about somebody else: "the cat is old and on insulin".
_START = r"\A(?:(?i:so|and|but|ok|well|hi|hey|update|also|still)[,:!]? )?"
_END = r"(?=\s*(?:\Z|[,;:.!?()–—]|(?:since|for|at|in|last|this|and|so|but|because|now|after)\b))"
_NAME = r"[A-ZÀ-Þ][\w'-]+(?: [A-ZÀ-Þ][\w'-]+)?"
_CONDITION = (
    r"(?:asthma|diabetes|arthritis|migraines|gout|eczema|psoriasis|ADHD|adhd|epilepsy|tinnitus"
    r"|IBS|ibs|sciatica|hay ?fever|insomnia|lupus|POTS|endometriosis|coeliac disease"
    r"|celiac disease|stammer|dyslexia|rosacea|narcolepsy|Crohn's|Graves' disease|scoliosis)"
)
_FOOD = r"(?:dairy|gluten|lactose|nuts|peanuts|shellfish|eggs|soya?|wheat|caffeine|alcohol|seafood)"
_STATE = r"(?:left-handed|dyslexic|colou?r-?blind|diabetic|coeliac|celiac|autistic)"
_ROLE = r"[a-z][\w' -]{2,40}?"
_HOLDERS = "|".join(
    role
    for role, relation in RELATIONS.items()
    if relation.predicate in ("lives_with", "reports_to", "colleague_of")
)


def _trade(words: str) -> str | None:
    role = role_in(words)
    if role is None:
        return None
    return article(role if role[:2].isupper() else role[:1].lower() + role[1:])


def _place(words: str) -> str | None:
    return words if may_be_name(words) and not is_first_name(words) else None


def _same(words: str) -> str | None:
    return words


# A form, what it says, and the check of what stands in it.
_FORMS: tuple[tuple[str, str, Callable[[str], str | None]], ...] = (
    (
        rf"(?:{_START}|\b(?:I am|I have been|{NOT_SO}(?:put|started|got|switched|changed|moved)"
        r" me) )"
        rf"(?:[Nn]ow |[Bb]ack )?(?:[Oo]n|onto) (?P<o>{MEDICINE})\b",
        "I take {}",
        _same,
    ),
    (
        rf"(?:{_START}|\bI (?:have )?(?:just )?)(?:[Jj]ust )?[Ss]tarted (?:on |taking )?"
        rf"(?P<o>{MEDICINE})\b",
        "I take {}",
        _same,
    ),
    (
        rf"\b[Mm]y (?P<o>{_CONDITION})\b(?! (?:is|has|was|went|had) (?:been )?(?:gone|cured|away"
        r"|history|over|cleared|never)\b)",
        "I have {}",
        _same,
    ),
    (
        rf"(?:\bI (?:was|am|have been|got) (?:just |finally )?|{_START}(?i:been|got|just"
        rf"|finally) )diagnosed with (?P<o>[\w' ]{{3,30}}?){_END}",
        "I have {}",
        _same,
    ),
    (
        rf"{_START}(?P<o>{_NAME}) (?:(?:is|has been|became) (?:my|our) home{_END}"
        r"|has been home (?:since (?:19|20)\d\d|for (?:\w+ ){1,2}years)\b)",
        "I live in {}",
        _place,
    ),
    (rf"\b(?:I|[Ww]e) (?:now )?call (?P<o>{_NAME}) home\b", "I live in {}", _place),
    (
        r"\b(?P<o>[A-Z]\w+) is my (?:mother tongue|first language|native (?:language|tongue))"
        rf"{_END}",
        "I speak {}",
        _same,
    ),
    (
        rf"(?:\bI (?:have been|was|got|am)|{_START}(?i:got|been|just)) (?:just |finally )?"
        rf"promoted to (?P<o>{_ROLE}){_END}",
        "I am {}",
        _trade,
    ),
    (rf"\b(?:my|since the) promotion to (?P<o>{_ROLE}){_END}", "I am {}", _trade),
    (rf"{_START}[Bb]een (?P<o>an? {_ROLE}) (?=for|since)", "I am {}", _trade),
    (rf"{_START}[Bb]een (?:a )?(?P<o>{DIET}) (?=for|since)", "I am {}", _same),
    (rf"{_START}[Dd]ay job: (?:an? )?(?P<o>{_ROLE}){_END}", "I am {}", _trade),
    (rf"\A(?:[Aa]n? )?(?P<o>(?i:{_ROLE})) here,", "I am {}", _trade),
    (
        rf"\A(?P<o>(?i:{_STATE})),(?= (?:so|since|which|and (?:I|it|my)|by the way|btw)\b)",
        "I am {}",
        str.lower,
    ),
    (
        rf"(?:{_START}|\bI )[Cc]annot (?:do|have|eat|tolerate|digest) (?P<o>{_FOOD})"
        r"(?=\s*(?:\Z|[,;:.!()–—]|(?:and|so|but|because)\b))",
        "I do not eat {}",
        _same,
    ),
    (
        rf"{_START}(?P<o>[\w-]+(?: [\w-]+)?) makes? me (?:swell|(?:come|break) out in"
        r" (?:hives|spots|a rash))\b",
        "I am allergic to {}",
        str.lower,
    ),
    (
        r"\A(?:[Tt]hinking (?:of|about)|[Ll]earning|[Ss]tarting|[Tt]aking up) [\w ]{3,40} at"
        r" (?P<o>(?!2[0-4])[2-9]\d)\Z",
        "I am {} years old",
        _same,
    ),
)
_COMPILED = tuple((re.compile(form), says, check) for form, says, check in _FORMS)
_HOLDER = re.compile(rf"(?:\A|[.;] )[Nn]ew (?P<role>{_HOLDERS}): (?P<name>{_NAME})\b")
_FIRST_PERSON = re.compile(r"\b(?:I|[Mm]y|me|[Ww]e|our)\b")
# One of these words is in whatever a form finds; looking for them first is much quicker.
_SIGNS = re.compile(
    r"\b(?:on|onto|[Ss]tarted|[Mm]y|diagnosed|home|promoted|promotion|[Bb]een|job|[Oo]ccupation"
    r"|[Pp]rofession|here|[Cc]annot|me|at|[Nn]ew)\b|-handed|\A\w+,"
)


def in_full(sentence: str, *, of_another: bool) -> Iterator[str]:
    """What short forms of a sentence say of the speaker, each as a clause.

    Args:
        of_another: The message speaks of somebody else, so who is left out may be they.
    """
    text = spelt_out(sentence)
    if _SIGNS.search(text) is None:
        return
    for form, says, check in _COMPILED:
        found = form.search(text)
        if found is None or (of_another and not _FIRST_PERSON.search(found[0])):
            continue
        if value := check(found["o"]):
            yield says.format(value)
    holder = _HOLDER.search(text)
    if holder is not None and may_be_name(holder["name"]):
        yield f"My {holder['role']} is called {holder['name']}"
