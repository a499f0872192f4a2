"""English verbs that statements are made with: their forms, read and written."""

from __future__ import annotations

# Lemma, third person, past, participle; the form in -ing is made by rule or given in `_ING`.
_IRREGULAR = """
be is was been|become becomes became become|begin begins began begun|break breaks broke broken
|bring brings brought brought|build builds built built|buy buys bought bought
|catch catches caught caught|choose chooses chose chosen|come comes came come|cut cuts cut cut
|do does did done|draw draws drew drawn|drink drinks drank drunk|drive drives drove driven
|eat eats ate eaten|fall falls fell fallen|feel feels felt felt|find finds found found
|fly flies flew flown|get gets got got|give gives gave given|go goes went gone
|grow grows grew grown|have has had had|hear hears heard heard|hold holds held held
|keep keeps kept kept|lead leads led led|leave leaves left left|lose loses lost lost
|make makes made made|mean means meant meant|meet meets met met|pay pays paid paid
|quit quits quit quit|read reads read read|ride rides rode ridden|run runs ran run
|see sees saw seen|sell sells sold sold|set sets set set|shoot shoots shot shot
|sing sings sang sung|sit sits sat sat|sleep sleeps slept slept|speak speaks spoke spoken
|spend spends spent spent|swim swims swam swum|take takes took taken
|teach teaches taught taught|tell tells told told|think thinks thought thought
|wear wears wore worn|win wins won won|write writes wrote written|know knows knew known
|bike bikes biked biked|cannot cannot could could|adopt adopts adopted adopted
|wake wakes woke woken|put puts put put|can can could could
"""
_REGULAR = """
    accept adore arrive attend avoid bake book call cancel celebrate change climb collect
    complete cook commute compete dance despise detest dislike ditch divorce drop earn enjoy
    enrol enroll expect finish follow garden graduate hate hike host identify injure interview
    join journal jog knit launch learn like live love major manage marry meditate mentor migrate
    miss mind move need name organise organize own paint pass perform plan plant play practise
    practice prefer present publish propose purchase raise receive record release relocate rent
    rename report retire return sail save share ski skip smoke specialise specialize start stay
    stop study suffer support switch tend train transfer travel try turn tutor use visit
    volunteer walk want watch weigh welcome work worship swap speak postpone abandon resign
    renovate sign develop co-found found design create prepare hope intend aim loathe cycle bake
    sketch compose coach live-stream stream foster survive donate register defend reschedule
    shift increase reduce lower rename spell share paraglide explore consider admire appreciate
    hunt fish camp surf weld sew crochet program code blog vlog photograph upgrade downgrade
    convert settle resume battle undergo order invest enter qualify rehome vape hand warm
"""
_ING = {
    "be": "being",
    "begin": "beginning",
    "cut": "cutting",
    "get": "getting",
    "quit": "quitting",
    "run": "running",
    "set": "setting",
    "swim": "swimming",
    "win": "winning",
    "put": "putting",
    "sit": "sitting",
    "ski": "skiing",
    "plan": "planning",
    "stop": "stopping",
    "prefer": "preferring",
    "drop": "dropping",
    "jog": "jogging",
    "knit": "knitting",
    "skip": "skipping",
    "enrol": "enrolling",
    "swap": "swapping",
    "transfer": "transferring",
    "program": "programming",
    "blog": "blogging",
    "vlog": "vlogging",
    "sail": "sailing",
    "weld": "welding",
    "travel": "travelling",
}
_DOUBLED = frozenset(
    "plan stop prefer drop jog knit skip enrol swap transfer program blog vlog travel".split()
)
# As Americans and hurried people write them.
_ALSO = {
    "traveled": "travel",
    "traveling": "travel",
    "learnt": "learn",
    "practiced": "practice",
    "gotten": "get",
    "dreamt": "dream",
    "'m": "be",
    "am": "be",
    "are": "be",
    "were": "be",
    "studied": "study",
    "married": "marry",
}


def _third(verb: str) -> str:
    if verb.endswith("y") and verb[-2] not in "aeiou":
        return verb[:-1] + "ies"
    return verb + ("es" if verb.endswith(("s", "sh", "ch", "x", "z", "o")) else "s")


def _past(verb: str) -> str:
    if verb in _DOUBLED:
        return verb + verb[-1] + "ed"
    if verb.endswith("e"):
        return verb + "d"
    if verb.endswith("y") and verb[-2] not in "aeiou":
        return verb[:-1] + "ied"
    return verb + "ed"


def _ing(verb: str) -> str:
    if verb in _ING:
        return _ING[verb]
    if verb.endswith("e") and not verb.endswith(("ee", "oe", "ye")):
        return verb[:-1] + "ing"
    return verb + "ing"


def _table() -> dict[str, tuple[str, str, str, str]]:
    table = {
        verb: (_third(verb), _past(verb), _past(verb), _ing(verb)) for verb in _REGULAR.split()
    }
    for row in _IRREGULAR.replace("\n", " ").split("|"):
        verb, third, past, participle = row.split()
        table[verb] = (third, past, participle, _ing(verb))
    return table


FORMS = _table()
BASE = {verb: verb for verb in FORMS}
THIRD = {forms[0]: verb for verb, forms in FORMS.items()}
PAST = {forms[1]: verb for verb, forms in FORMS.items()}
PARTICIPLE = {forms[2]: verb for verb, forms in FORMS.items()}
ING = {forms[3]: verb for verb, forms in FORMS.items()}
for _form, _verb in _ALSO.items():
    _where = ING if _form.endswith("ing") else PAST
    if _form not in ("'m", "am", "are", "were"):
        _where[_form] = PARTICIPLE[_form] = _verb


def third_person(verb: str) -> str:
    return FORMS[verb][0] if verb in FORMS else _third(verb)


def past(verb: str) -> str:
    return FORMS[verb][1] if verb in FORMS else _past(verb)


def gerund(verb: str) -> str:
    return FORMS[verb][3] if verb in FORMS else _ing(verb)
