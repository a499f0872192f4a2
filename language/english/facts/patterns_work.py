"""Employers, roles and what people work on."""

from __future__ import annotations

from language import english
from language.english.facts.rules import Mode, Options, row, rows_of, table_of
from language.english.facts.vocabulary import is_first_name, is_learner, role_in

_FIRED = r"(?:laid off|fired|sacked|let go|made redundant)"
_DESK = (
    r"(?:the )?(?:payroll|accounts|accounting|bookkeeping|marketing|admin|hr|pr|sales|it support"
    r"|customer (?:service|support)|social work|night shifts)"
)
_EMPLOYER = r"(?P<o>.+?),?(?: as (?P<role>.+?))?(?: on (?:weekends|\w+days))?\Z"
_FIELDS = f"(?:{english.one_of('fields')})"
_TRAINING = "internship|placement|traineeship"
# "A job with care".
_WITH = r"(?:with|from)(?= (?:the )?(?-i:[A-Z]))"
_BUSINESS = english.one_of("businesses")
_VENUES = english.one_of("venues")
_NO_NAME = frozenset(
    "home night nights weekends least all myself him her hours first full once a"
    " an the my our various different several noon midnight lunch dawn".split()
)


_NO_EMPLOYER = tuple(
    "the moment/a living/the same/a while/the time/a long/the weekend/my desk/my own/the first"
    "/a project/the project/my project/a new project/my goals/the office/a solution".split("/")
)


# Where somebody is for a while.
_PASSING = tuple(
    "moment/airport/dentist/doctor/hairdresser/barber/park/supermarket/bus/pub/cinema/station/door"
    "/gym/office/beach/end/same".split("/")
)


def _is_employer(words: str) -> bool:
    """Somewhere one is employed: a name, or a place of work; not "home" or "night"."""
    low = words.lower()
    if low.split()[0] in _NO_NAME:
        return low.split()[0] in ("a", "an", "the", "my", "our") and not low.startswith(
            _NO_EMPLOYER
        )
    named = any(part[:1].isupper() for part in words.split())
    return named or not (" " in low or low[0].isdigit())


def _is_firm(words: str) -> bool:
    """ "A job with Bosch", not "a job with Anna"."""
    return _is_employer(words) and not is_first_name(words)


def _is_lasting(words: str) -> bool:
    """ "At the bakery" may be where somebody works; "at the airport" is where they are."""
    return not (words.startswith("the ") and words[4:].startswith(_PASSING))


_NO_SUBJECTS = frozenset("me him her you us them my the how myself well in at".split())


def _is_subject(words: str) -> bool:
    """What is taught, not who is."""
    taught = words.lower().split()
    return len(taught) < 4 and taught[0] not in _NO_SUBJECTS


def _is_capital(words: str) -> bool:
    return words[:1].isupper()


def _is_role(words: str) -> bool:
    role = role_in(words.removeprefix("a ").removeprefix("an ").removeprefix("the "))
    return role is not None


def _is_trade(words: str) -> bool:
    return _is_role(words) and not is_learner(role_in(words) or "student")


def _is_learner(words: str) -> bool:
    """ "A law student", not "a good student"."""
    return words.split()[0] not in english.words("praise") | english.words("blame") | _QUALITIES


_QUALITIES = frozenset("visual quick slow fast lifelong former eager hard keen new old ex".split())


def _is_work(words: str) -> bool:
    """What one retires from at the end of a working life; not "competitive rowing"."""
    return words[:1].isupper() or words.split()[-1].lower() in _KINDS_OF_WORK


_KINDS_OF_WORK = frozenset(
    "job work army navy police force forces service industry company firm bank railway railways"
    " teaching nursing medicine law academia banking farming mining post hospital school"
    " university council practice business trade factory".split()
)


def _is_plain_trade(words: str) -> bool:
    """ "I am electrician": what leaves out its article is no other word as well."""
    return words.endswith(
        ("ian", "er", "or", "ant", "nurse", "eer", "onomist", "apist", "entist", "principal")
    ) and _is_trade(words)


_AT: Options = {"kind": "organisation", "accepts": _is_employer}
_AT_A_FIRM: Options = {"kind": "organisation", "accepts": _is_firm}
_BEING_AT: Options = {"kind": "organisation", "accepts": _is_lasting, "confidence": 0.7}
_BACK_AT = r"(?:back )?at (?P<o>(?:the [a-z][\w-]+|[A-Z][\w'&.-]+(?: [A-Z][\w'&.]+){0,3}))"
# "I'm at Aldi now, days only". Without "now", as in "I'm at Aldi, weekends", it may be shopping.
_IN_SHIFTS = r" now, (?:only )?(?:days|nights|(?:part|full)[- ]time)(?: only)?\Z"
# What one has beside a job: it takes the place of none.
_NOT_BESIDE = r"(?!(?:second|third|side|extra|weekend|evening|night|Saturday|Sunday)\b)"
_ROLE: Options = {"accepts": _is_role, "object": "{role}"}
_works_at = rows_of("works_at", "work at {o}")
_works_as = rows_of("works_as", "work as {o}")
_did = rows_of("did", "get {o}", mode=Mode.EVENT, type="event")
_works_on = rows_of("works_on", "work on {o}")
_ROWS = (
    row(
        r"work: (?P<o>(?:mostly |only |always )?(?:(?:from home|remotely|part[- ]time|full[- ]time)"
        r"(?! (?:at|in|for)\b)|nights|evenings|weekends|(?:the )?(?:night|day|early|late|evening"
        r"|weekend) shifts?))(?=\Z|,| (?:at|in|for|as|and|now)\b)",
        "does",
        "work {o}",
        past=False,
    ),
    _works_at(
        rf"work: (?:full[- ]time |part[- ]time |remotely |here |again |there |(?:late )?(?:nights"
        rf"|days|evenings|weekends|shifts|mornings) "
        rf"|as (?P<role2>[\w\s-]+?) )?(?:at|for) (?:an? [a-z ]+, (?=[A-Z]))?{_EMPLOYER}",
        **_AT,
    ),
    _works_at(
        rf"work: in (?P<o>(?:the )?[\w\s]*?\b{_FIELDS}(?: industry| sector| department)?)\b.*",
        "work in {o}",
        object="{o}",
        confidence=0.75,
    ),
    _works_at(
        rf"work: (?:(?:full|part)[- ]time |nights |shifts )?in (?P<o>(?:an?|the) (?:[\w-]+ ){{0,2}}"
        rf"(?:{_VENUES}|company|firm|bank|startup|call centre|nursery))(?=\Z|,| (?:in|as|while|and"
        rf"|on|at|near)\b)",
        "work in {o}",
        accepts=_is_lasting,
    ),
    _works_at(r"work: in (?P<o>[A-Z][\w-]+)\Z", "work in {o}", aspect="place", kind="place"),
    _works_as(r"work: as (?P<o>.+?)(?: (?:at|for) .+)?\Z", **_ROLE),
    _works_as(r"be: (?:an? |the |one of the )(?P<o>.+)", accepts=_is_trade, object="{role}"),
    _works_as(
        r"be: an? (?P<o>(?:[\w-]+ ){0,2}(?:student|apprentice|trainee|intern))"
        r"(?=\Z|,| (?:at|in|with|and|now|from|here)\b)",
        "be a {o}",
        accepts=_is_learner,
    ),
    _works_as(r"be: (?P<o>(?:head|director) of .+)", accepts=_is_trade, object="{role}"),
    _works_as(
        r"be: (?P<o>[a-z]+(?: [a-z]+)?)(?=\Z|,| (?:from|in|at|and|by)\b)",
        accepts=_is_plain_trade,
        object="{role}",
    ),
    _works_as(
        r"paint make write sell teach build drive design bake cook sew grow play sing dance draw "
        r"code train coach: (?P<o>.{2,40}?) for a living\Z",
        "{verb} {o}",
        past=False,
    ),
    _works_at(
        r"start begin: (?:work )?at (?P<o>(?:the )?[A-Z][\w'&.-]+(?: [A-Z][\w'&.]+){0,3})(?: in "
        r"[A-Z]\w+)?(?:,? as (?P<role>.+)|, on .+)?\Z",
        mode=Mode.BEGAN,
        confidence=0.7,
        kind="organisation",
    ),
    _works_at(
        r"fly drive write code design play: (?:[a-z]+ )?for (?P<o>[A-Z][\w'&.-]+(?: "
        r"[A-Z][\w'&.]+){0,3})\b",
        kind="organisation",
        past=False,
    ),
    _works_at(rf"do: {_DESK} (?:at|for) (?P<o>[A-Z].+)", **_AT),
    _works_as(rf"do: (?P<o>{_DESK})(?: (?:at|for|in) (?P<f>.+))?\Z", "do {o}", past=False),
    # "I'm at Tesco" is where I am, "my brother is at Bosch" where he works.
    _works_at(rf"be: {_BACK_AT} as (?P<role>.+)\Z", **_BEING_AT),
    _works_at(rf"be: {_BACK_AT}\Z", kin=True, **_BEING_AT),
    _works_at(rf"be: {_BACK_AT}\Z", since=True, or_now=True, **_BEING_AT),
    _works_at(rf"be: {_BACK_AT}{_IN_SHIFTS}", **_BEING_AT),
    _works_at(
        r"be: (?:on a temporary contract|an? intern|an? apprentice|employed"
        r"|under contract|on the staff) (?:at|by|with) (?P<o>.+)",
        **_AT,
    ),
    _works_as(
        r"be: (?P<o>self[- ]employed|freelance|unemployed|retired(?! from the )|between jobs"
        r"|out of work|a freelancer)\b",
        "be {o}",
    ),
    _works_at(
        rf"have: an? (?:{_NOT_BESIDE}[\w-]+ )*(?:job|{_TRAINING}) (?:at|{_WITH}) {_EMPLOYER}",
        **_AT_A_FIRM,
    ),
    _works_at(rf"do: an? (?:[\w-]+ )*(?:{_TRAINING}) (?:at|{_WITH}) {_EMPLOYER}", **_AT_A_FIRM),
    _works_as(r"make earn: (?:a|my) living as (?P<o>.+)", **_ROLE),
    _works_at(
        r"be: with (?P<o>[A-Z][\w&.-]+)\Z",
        since=True,
        kind="organisation",
        accepts=lambda words: not is_first_name(words),
    ),
    _works_at(rf"join: {_EMPLOYER}", mode=Mode.BEGAN, kind="organisation", accepts=_is_capital),
    *(
        _works_at(rf"{verbs}: {tail}{_EMPLOYER}", mode=Mode.BEGAN, **_AT_A_FIRM)
        for verbs, tail in (
            (
                "start begin",
                rf"(?:a |my )?(?:new )?(?:job|role|position|internship) (?:at|{_WITH}|for) ",
            ),
            (
                "get accept take find land",
                rf"(?:an? |the |my )?(?:{_NOT_BESIDE}[\w-]+ ){{0,2}}(?:job|role|position) (?!from)"
                rf"(?:at|{_WITH}) ",
            ),
            # "I got an offer" leaves it open.
            ("accept take", rf"(?:an? |the |my |their )?(?:[\w-]+ ){{0,2}}offer (?:at|{_WITH}) "),
            ("be get", r"hired (?:at|by|with) "),
            ("switch change move", r"(?:jobs )?to a (?:job|role|position) at (?=[A-Z])"),
        )
    ),
    *(
        _works_as(rf"{verbs}: {tail}", mode=Mode.BEGAN, **_ROLE)
        for verbs, tail in (
            ("become", r"(?:an? |the )?(?P<o>.+)"),
            ("qualify retrain", r"as (?P<o>an? .+)"),
            ("start begin", r"(?:out )?as (?P<o>.+)"),
            (
                "get accept take find land",
                r"(?:an? |the |my )?(?:new )?(?:job|role) as (?P<o>.+)\Z",
            ),
            ("be get", r"(?:promoted to|a promotion to|appointed|made) (?P<o>.+)"),
        )
    ),
    _works_at(
        r"leave quit: (?:my (?:job|role|position) (?:at|with) |working (?:at"
        r"|for) )?(?P<o>(?:the (?!choir|band|club|team|society|committee|orchestra|league)"
        r"[a-z][\w-]+|[A-Z][\w'&.-]+(?: [A-Z][\w'&.]+){0,3}))\Z",
        mode=Mode.ENDED,
        kind="organisation",
    ),
    _works_at(r"resign: from (?P<o>.+)", mode=Mode.ENDED, kind="organisation"),
    _works_at(rf"get be: {_FIRED} (?:from|by|at) (?P<o>.+)", mode=Mode.ENDED, kind="organisation"),
    *(
        _works_at(rf"{verbs}: {tail}(?P<o>)", "have their job", mode=Mode.ENDED, object="job")
        for verbs, tail in (
            ("leave quit lose", r"(?:my|the) job\b(?! (?:at|with))"),
            (
                "hand give",
                r"(?:in )?(?:my|our|h\w+|their|the) (?:notice|resignation)(?! (?:at|to|on|for) )",
            ),
            ("get be", rf"{_FIRED}(?! (?:from|by|at|up)\b)"),
        )
    ),
    _did(r"get be: (?P<o>laid off|sacked|made redundant)\b(?! (?:from|by|at)\b)"),
    _works_as(
        r"retire: (?:from (?P<o>.+)|early)?\Z",
        "be retired",
        mode=Mode.BEGAN,
        accepts=_is_work,
        object="retired",
    ),
    _works_as(r"go turn: (?P<o>freelance|self-employed)", "work {o}", mode=Mode.BEGAN),
    _works_as(r"freelance: as (?P<o>.+)", "freelance as {o}", **_ROLE),
    _works_as(r"freelance: (?:full[- ]time)?(?P<o>)\Z", "freelance", object="freelance"),
    _works_at(r"be: in the (?P<o>army|navy|air force|marines|military|police)\Z", "be in the {o}"),
    _works_as(
        r"teach: (?P<o>[\w\s]+?)(?: (?:at|in) (?P<org>.+))?\Z", "teach {o}", accepts=_is_subject
    ),
    _works_at(r"teach: at (?P<o>.+)\Z", "teach at {o}", **_AT),
    _works_as(
        rf"run manage lead: (?P<o>(?:an?|my own|our own|the) (?:[\w-]+ ){{0,3}}(?:{_BUSINESS}|team"
        r"|department)(?: (?:of|in|called|named|at|for|with)\b.*)?)\Z",
        "{verb} {o}",
        past=False,
    ),
    _did(
        r"found co-found start open launch: (?P<o>(?:an?|my own|our own|his own|her own|their own"
        rf"|my|our|this) (?:[\w-]+ ){{0,3}}(?:{_BUSINESS})\b.*)",
        "{verb} {o}",
    ),
    _works_on(
        r"work: on (?P<o>(?:my|our|an?) .*(?:thesis|novel|book|app|game|dissertation|album|website"
        r"|startup|phd|memoir|documentary|film|paper|screenplay|project (?:on|about|called)"
        r"|\w+ called [A-Z]\w+)\b.*)",
        confidence=0.75,
        past=False,
    ),
    _works_on(
        r"write: (?P<o>(?:my|an?|our) (?:[\w'-]+ ){0,3}(?:novel|book|thesis"
        r"|dissertation|memoir|screenplay|phd|musical|opera)\b.*)",
        "write {o}",
        confidence=0.8,
    ),
    _works_on(
        r"build develop: (?P<o>(?:an?|my|our) (?:[\w-]+ ){0,5}(?:app|website|house|boat|game"
        r"|startup|site|platform|tracker|robot|shed|cabin|guitar)\b.*)",
        "build {o}",
        confidence=0.7,
    ),
    _works_on(r"specialise specialize: in (?P<o>.+)", "{verb} in {o}"),
    row(
        r"train: for (?P<o>(?:the|an?|my) (?:[\w-]+ ){0,3}(?:marathon|triathlon|race|duathlon|relay"
        r"|ironman|ultra|10k|5k|half|swim|climb|ride|tournament|championships?|fight)\b.*)",
        "does",
        "train for {o}",
        past=False,
    ),
    row(r"be: (?P<o>an? (?:[a-z]+ )?member of (?:the|my|our|an?|[A-Z]).+)", "does", "be {o}"),
    row(r"sit be: on the (?P<o>(?:board|council|committee) of .+)", "does", "be on the {o}"),
)

WORK = table_of(_ROWS)
