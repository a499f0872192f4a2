"""Whether an object can be what its predicate asks for: a home is a place, a spouse a person.

`checked` needs evidence to reject: it rejects a place, a person or an employer if a list or a known
fact has the name as a tool's, or if the words name no such thing at all ("at scale", "to my job").
`weighed` needs evidence for it: a name that nothing speaks for may be that of a tool which no list
has ("we moved to Proxmox"), and replaces no fact.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

from language.english import text_of, words
from language.english.facts.people import RELATIONS
from language.english.facts.vocabulary import MONTH, NUMBER_WORD, role_in
from language.english.judging import same
from language.facts import (
    HEARSAY,
    SURE,
    UNSURE,
    USER,
    Candidate,
    Judgement,
    Known,
    Verdict,
    is_unsure,
)

# Whether the palace knows a name as that of a tool.
IsTool = Callable[[str], bool]

_PLACES = frozenset({"lives_in", "from"})
_PEOPLE = frozenset({"married_to", "engaged_to", "partner", "reports_to"})
_EMPLOYERS = frozenset({"works_at", "studies_at"})
_FIGURES = frozenset({"age", "height", "weight", "rent", "salary", "birthday"})
_USED = frozenset({"uses", "learns", "knows", "works_on"})

# Heads of phrases that name no place to live in, no person and no employer.
_NO_PLACES = words("no_places")
_NO_PEOPLE = words("no_people")
_NO_EMPLOYERS = words("no_employers")
# Spelt like code: "k8s", "C++", "next.js".
_SPELT_AS_CODE = re.compile(r"\A[a-z]+\d|[+#_]|\w\.(?!Z)[a-z]{2,}\b")
# "Plan B", "Phase 2".
_STAGE = re.compile(
    r"(?:plan|phase|version|step|stage|option|tier|level|v)(?: \w{1,2}|\d*)\Z", re.I
)
_HAS_FIGURE = re.compile(rf"(?i)\d|\b{NUMBER_WORD}\b|\b{MONTH}\b")
_MOST_NAME_WORDS = 6

# What somebody lives in, without a name.
_HOMES = words("homes")
_WORKPLACES = words("workplaces")
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
# What a place's name stands before, if not the place is meant.
_OF_WORK = "(?:office|branch|team|site|plant|project|group|department|desk|shift|campus|conference)"
_PART = re.compile(r", | (?:in|near|of|on|at|by|outside) ")
_HEAD = re.compile(r"\s(?:of|in|at|near|on|by|with|for|from|outside|between)\s|,")
_SMALL_I = re.compile(r"(?<![\w'])(?:i|im|i'm|ive|i've)(?![\w'])")


def checked(judgement: Judgement, known: Sequence[Known], is_tool: IsTool) -> Judgement:
    """The judgement, or another one if the candidate's object is of the wrong kind.

    Such a candidate is dropped: it is not stored and retires no fact. If a model lets a candidate
    with another predicate retire a single-valued fact, the object must fit that fact's predicate
    too; otherwise the candidate is added beside the fact. So is one that is unsure.
    """
    judgement = _cautious(judgement)
    if judgement.verdict not in (Verdict.ADD, Verdict.UPDATE, Verdict.COEXIST):
        return judgement
    candidate = judgement.candidate
    doubt = doubt_of(candidate, known, is_tool)
    if doubt:
        return Judgement(Verdict.NONE, candidate, why=doubt)
    old = judgement.fact
    if old is not None and old.single and old.predicate != candidate.predicate:
        as_before = replace(candidate, predicate=old.predicate)
        if _is_tool_name(as_before, known, is_tool) and old.predicate in _KINDS:
            return Judgement(Verdict.ADD, candidate, why="it is of another kind")
    return judgement


def _cautious(judgement: Judgement) -> Judgement:
    """The judgement; an unsure statement is added instead of changing a known fact."""
    candidate = judgement.candidate
    if judgement.verdict not in (Verdict.UPDATE, Verdict.DELETE) or not is_unsure(candidate):
        return judgement
    if candidate.confidence == HEARSAY:
        # It fits what is known of that name, which is no stranger's then.
        return replace(judgement, candidate=replace(candidate, confidence=SURE))
    return Judgement(Verdict.ADD, candidate, why="it is unsure")


def doubt_of(candidate: Candidate, known: Sequence[Known], is_tool: IsTool) -> str:
    """Why the object is not of the kind its predicate asks for; empty if nothing says so."""
    kind = _KINDS.get(candidate.predicate)
    if kind is None or candidate.negated or candidate.type == "opinion":
        return ""
    if candidate.predicate in _FIGURES:
        return "" if _HAS_FIGURE.search(f"{candidate.object} {candidate.text}") else f"no {kind}"
    if candidate.predicate == "name":
        return f"no {kind}" if _is_no_name(candidate, known, is_tool) else ""
    if _is_tool_name(candidate, known, is_tool):
        return f"a tool, and no {kind}"
    return f"no {kind}" if _is_no_such_thing(candidate) else ""


def _is_tool_name(candidate: Candidate, known: Sequence[Known], is_tool: IsTool) -> bool:
    """Whether the object is the name of a tool, by a list or by what the palace knows.

    A listed place or first name is no tool, unless a known fact says that a person uses a thing of
    that name. A listed organisation is never a tool: people also use their employer's products.
    """
    name = candidate.object.removeprefix("the ").strip()
    if not name:
        return False
    if _is_listed(candidate.predicate, name.lower()):
        return candidate.predicate not in _EMPLOYERS and _is_used(name, known)
    # "AWS Frankfurt" is no town, Swift Current is one.
    is_town = candidate.predicate not in _PLACES or "," in name or is_place_name(name)
    first = name if is_town else name.split()[0]
    named_so = _is_named_like_a_tool(name) or _is_named_like_a_tool(first)
    return named_so or _is_used(name, known) or is_tool(name)


def is_place_name(name: str) -> bool:
    """Whether a list has the name: countries, regions, and towns from 5,000 inhabitants on."""
    plain = name.lower().removeprefix("the ").replace("’", "'").strip(" .")
    if not plain:
        return False
    signs = unicodedata.normalize("NFKD", plain)
    folded = "".join(sign for sign in signs if not unicodedata.combining(sign))
    return plain in words("places") or f"|{folded}|".encode() in _cities()


@cache
def _cities() -> bytes:
    """All names in one text, which takes a ninth of a set's memory."""
    return text_of("cities").encode()


def _is_listed(predicate: str, plain: str) -> bool:
    """Whether a list has the name as one of the kind that the predicate asks for."""
    if predicate in _PLACES:
        return plain in words("places")
    if predicate in _EMPLOYERS:
        return plain in words("organisations") or plain in _COMPANIES
    return plain.split()[0] in words("first_names")


def _is_named_like_a_tool(name: str) -> bool:
    plain = name.lower()
    listed = plain in words("tools") or plain in words("software")
    return listed or _SPELT_AS_CODE.search(name) is not None


# Tools that carry the name of the company which makes them.
_COMPANIES = frozenset(
    "airtable asana atlassian basecamp bitbucket bitwarden canonical circleci clickup cloudflare"
    " confluent databricks datadog discord docker duolingo elastic evernote figma github gitlab"
    " grafana hashicorp heroku jetbrains linear mailchimp miro mongodb netlify nginx notion oracle"
    " postman puppet salesforce sentry shopify signal slack snowflake splunk spotify squarespace"
    " stripe supabase tableau telegram todoist trello unity vercel webflow whatsapp zapier zendesk"
    " zoom aws netflix facebook twitter instagram reddit tesla".split()
)


def _is_used(name: str, known: Sequence[Known]) -> bool:
    """Whether a known fact says that a person uses, learns or knows a thing of this name."""
    return any(one.fact.predicate in _USED and same(one.fact.object, name) for one in known)


def _is_no_such_thing(candidate: Candidate) -> bool:
    """Whether a phrase without a name is of another kind: "the terminal", "their job", "scale"."""
    phrase = candidate.object
    if candidate.predicate in _PLACES and _STAGE.match(phrase):
        return True
    if phrase != phrase.lower():
        phrase = re.split(r" (?:of|in|at|near|between) ", phrase)[0]
        if phrase != phrase.lower():
            return False
    heads = re.split(r" (?:of|in|at|near|between|for|with) ", phrase)[0].split()
    return bool(heads) and heads[-1] in _HEADS.get(candidate.predicate, frozenset())


def _is_no_name(candidate: Candidate, known: Sequence[Known], is_tool: IsTool) -> bool:
    """Whether it is too long for a name, has no letters, or names a tool and is no first name."""
    name = candidate.object
    if len(name.split()) > _MOST_NAME_WORDS or not any(map(str.isalpha, name)):
        return True
    role = candidate.subject.name.rpartition("'s ")[2]
    relation = RELATIONS.get(role)
    if role != USER and (relation is None or relation.animal):
        return False
    return _is_tool_name(candidate, known, is_tool)


_KINDS = {
    **dict.fromkeys(_PLACES, "place"),
    **dict.fromkeys(_PEOPLE, "person"),
    **dict.fromkeys(_EMPLOYERS, "organisation"),
    **dict.fromkeys(_FIGURES, "figure"),
    "name": "name",
}
_HEADS = {
    **dict.fromkeys(_PLACES, _NO_PLACES),
    **dict.fromkeys(_PEOPLE, _NO_PEOPLE),
    **dict.fromkeys(_EMPLOYERS, _NO_EMPLOYERS),
}


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
    head = _PART.split(name)[0]
    if head == head.lower():
        cased = message != message.lower() and _SMALL_I.search(message) is None
        if cased or _is_common_noun(head, clause):
            return None
    return replace(candidate, confidence=min(candidate.confidence, UNSURE))


def _is_home(candidate: Candidate, verb: str, clause: str) -> bool:
    name = candidate.object
    parts = _PART.split(name)
    if _names_one_of(name, _HOMES):
        return True
    # "A role in Ghent", "the Ghent office".
    if _is_common_noun(parts[0], clause) or re.search(
        rf"\bthe {re.escape(name.removeprefix('the '))} {_OF_WORK}\b", clause
    ):
        return False
    if name not in words("also_things") and any(map(is_place_name, {name, *parts})):
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
    known = name in words("organisations") or name in _COMPANIES
    return known or _names_one_of(name, _workplaces()) or name.endswith("'s")


def _is_spouse(candidate: Candidate, _verb: str, clause: str) -> bool:
    name = candidate.object
    if name != name.lower() or name.split()[0] in words("first_names") or role_in(name):
        return True
    return _is_common_noun(name, clause)


def _is_common_noun(name: str, clause: str) -> bool:
    """Whether it is written with a small letter, after an article or the like."""
    if name != name.lower():
        return False
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
