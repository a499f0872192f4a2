"""Whether the words say that a home is a place, an employer an organisation, a spouse a person.

A name that nothing speaks for may be that of a tool which no list has ("we moved to Proxmox").
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache

from language.english.facts.vocabulary import role_in
from language.english.judging.object_kinds import COMPANIES, is_place_name
from language.english.lexicon import words
from language.facts import UNSURE, Candidate

# What somebody lives in, without a name.
_HOMES = frozenset(
    "countryside village villages town towns city cities suburb suburbs country island islands"
    " coast mountain mountains valley beach seaside sea woods forest hills bush desert jungle"
    " outback outskirts centre center downtown uptown north south east west area neighbourhood"
    " neighborhood district quarter street road lane avenue square estate county province"
    " territory resort park camp community commune"
    " building tower flat flats apartment apartments house houses home place studio"
    " cottage cabin bungalow condo dorm dorms dormitory hostel hotel boat houseboat narrowboat"
    " barge van caravan campervan rv trailer loft room bedsit basement attic annexe farm"
    " farmhouse ranch villa mansion castle chalet hut yurt tent shelter squat barracks quarters"
    " halls hall housing accommodation convent monastery townhouse penthouse duplex maisonette"
    " terrace metropolis hamlet abroad overseas campus".split()
)
_WORKPLACES = frozenset(
    "bank firm shop store council practice surgery mill mine plant port depot chain lab"
    " laboratory laboratories nursery government state city county embassy newspaper magazine"
    " publisher consultancy consulting court prison shipyard dockyard quarry salon bookstore"
    " bookshop deli butcher butchers dentist dentists vet vets florist hairdresser barber garden"
    " centre center clinic business industry insurer broker airline railway railways post"
    " service services authority ministry parliament institute academy network channel theatre"
    " gallery courthouse village town organisation organization corporation multinational"
    " contractor builder studio kiosk canteen cafeteria kitchen café spa dispensary refinery"
    " plantation winery distillery reserve observatory home hospice ngo dairy forge foundry"
    " sawmill estate ranch nhs".split()
)
_ENDS_LIKE_A_PLACE = re.compile(
    r"(?:burgh?|berg|ville|ton|ham|ford|furt|bridge|wood|wi(?:ck|ch)|bury|borough|boro|shire|stead"
    r"|mouth|land|stan|grad|dorf|hausen|heim|fel[dt]|gau|stadt|holm|vik|sund|haven|hafen|minster"
    r"|chester|field|worth|ley|dale|hill|creek|springs|falls|beach|valley|island|wells|bay"
    r"|heights|grove|thorpe|combe|polis|abad|pur|nagar|evo|ovo|wald|kirchen)\Z",
    re.IGNORECASE,
)
_ENDS_OF_PLACES = frozenset(
    "bridge wells springs falls heights creek beach hill hills bay valley lake green grove".split()
)
_BEGINS_LIKE_A_PLACE = re.compile(
    r"\A(?:St\.?|Saint|San|Santa|Santo|São|Port|Lake|Mount|Mt\.?|Upper|Lower|Little|Great|North|South"
    r"|East|West|New|Old|Fort|Bad|Los|Las|El|La|Le|Llan\w+|Castle|County|Isle) ?[A-Z]"
)
# Who moves house speaks so, not who changes a tool.
_SAID_OF_MOVES = re.compile(
    r"\b(?:back home|for (?:love|uni|university|college|retirement|a job)|(?:near|outside) [A-Z]"
    r"|flat|apartment|house|rent|mortgage|married|parents|family|kids|children|wife|husband"
    r"|girlfriend|boyfriend|fianc[eé]e?)\b"
)
_FROM = re.compile(r"\bfrom ([A-Z][\w-]+(?: [A-Z][\w-]+)?)")
# What stands before a common noun.
_ARTICLE = r"\b(?:the|an?|my|our|his|her|their|this|that|two|three|four|some)(?: [\w'-]+){0,4}? "
_PART = re.compile(r", | (?:in|near|of|on|at|by|outside) ")
_HEAD = re.compile(r"\s(?:of|in|at|near|on|by|with|for|from|outside|between)\s|,")
_SMALL_I = re.compile(r"(?<![\w'])(?:i|im|i'm|ive|i've)(?![\w'])")


def weighed(candidate: Candidate, verb: str, clause: str, message: str) -> Candidate | None:
    """The candidate, unsure if nothing speaks for its kind; None if it is a common noun.

    Args:
        verb: The base form of the verb that states it.
        clause: The words that state it, as they were written.
        message: The whole message, which shows whether its writer uses capitals.
    """
    speaks_for = _EVIDENCE.get(candidate.predicate)
    name = candidate.object
    ends_something = candidate.negated or candidate.valid_to is not None
    if speaks_for is None or ends_something or not name or speaks_for(candidate, verb, clause):
        return candidate
    if name == name.lower():
        cased = message != message.lower() and _SMALL_I.search(message) is None
        if cased or re.search(_ARTICLE + re.escape(name.split()[-1]), clause):
            return None
    return replace(candidate, confidence=min(candidate.confidence, UNSURE))


def _is_home(candidate: Candidate, verb: str, clause: str) -> bool:
    name = candidate.object
    parts = _PART.split(name)
    if any(map(is_place_name, {name, *parts})) or _names_one_of(name, _HOMES):
        return True
    if name == name.lower():
        return " " in name and name.split()[-1] in _ENDS_OF_PLACES
    of_its_shape = _ENDS_LIKE_A_PLACE.search(parts[0]) or _BEGINS_LIKE_A_PLACE.match(name)
    of_another = len(parts) > 1 and parts[-1] != parts[-1].lower()
    if verb != "move" or of_its_shape or of_another or not name.isascii():
        return True
    left = _FROM.search(clause)
    is_from_a_place = left is not None and is_place_name(left[1])
    return is_from_a_place or _SAID_OF_MOVES.search(clause) is not None


def _is_employer(candidate: Candidate, verb: str, clause: str) -> bool:
    name = candidate.object
    if verb not in ("work", "be") or "work at" not in candidate.text.replace("works", "work"):
        return True
    if name != name.lower() or re.search(r"\b(?:for|as an?)\b", clause):
        return True
    known = name in words("organisations") or name in COMPANIES
    return known or _names_one_of(name, _workplaces()) or name.endswith("'s")


def _is_spouse(candidate: Candidate, _verb: str, clause: str) -> bool:
    name = candidate.object
    if name != name.lower() or name.split()[0] in words("first_names") or role_in(name):
        return True
    return re.search(_ARTICLE + re.escape(name.split()[-1]), clause) is not None


@cache
def _workplaces() -> frozenset[str]:
    return _WORKPLACES | words("venues") | words("groups")


def _names_one_of(name: str, nouns: frozenset[str]) -> bool:
    """Whether the head of a phrase is one of the nouns: "small village near Lyon"."""
    heads = _HEAD.split(name)[0].split()
    head = heads[-1].lower() if heads else ""
    return head in nouns or head.removesuffix("s") in nouns


_EVIDENCE: dict[str, Callable[[Candidate, str, str], bool]] = {
    "lives_in": _is_home,
    "works_at": _is_employer,
    "married_to": _is_spouse,
    "engaged_to": _is_spouse,
}
