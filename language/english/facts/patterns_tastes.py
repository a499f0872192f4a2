"""Likes, dislikes, preferences, habits and pastimes."""

from __future__ import annotations

import re

from language.english.facts.rules import Mode, Options, row, rows_of, table_of
from language.english.facts.vocabulary import IDENTITIES

_PASTIMES = (
    r"(?:running|swimming|cycling|tennis|yoga|football|piano|guitar|violin|cello|climbing|karate"
    r"|boxing|dancing|painting|knitting|chess|golf|soccer|drawing|pottery|rowing|sewing|judo"
    r"|badminton|squash|hiking|gardening|baking|photography)"
)
_LIKED = r"(?P<o>.+)"
_PLAYED = (
    r"(?P<o>(?:the )?(?:piano|guitar|violin|viola|cello|flute|clarinet|drums|bass|saxophone|trumpet"
    r"|harp|accordion|ukulele|banjo|organ|oboe|bassoon|trombone|harmonica|synth|tuba|euphonium"
    r"|cornet|french horn|bagpipes|fiddle|mandolin|tin whistle|steelpan|bass trombone|bass guitar"
    r"|tennis|football|soccer|basketball|volleyball|badminton|squash|golf|rugby|cricket|hockey"
    r"|chess|go|poker|bridge|padel|table tennis|ping pong|darts|baseball|handball|video games"
    r"|board games|dungeons (?:and|&) dragons|d&d|scrabble|bowls|pool|snooker|lacrosse|softball"
    r"|pickleball)(?![\w-])(?:,? (?:and|or) (?:the )?\w+)?)"
)
_DONE = (
    r"(?P<o>(?:\w+ )?(?:yoga|pilates|karate|judo|boxing|crossfit|pottery|ballet|gymnastics|aerobics"
    r"|triathlons?|ju-?jitsu|taekwondo|tai chi|ceramics|woodworking|photography|archery|fencing"
    r"|rowing|climbing|bouldering|capoeira|parkour|calligraphy|origami|stand-up|improv|weights"
    r"|martial arts|kickboxing|crochet|embroidery|carpentry|beekeeping|birdwatching))"
)
_HABITS = (
    "run swim cycle bike jog walk hike climb meditate journal dance paint draw garden knit sew "
    "cook bake row ski surf fish sing pray take lift stretch practise practice train commute "
    "volunteer work exercise read write sketch sail skate box wake get go ride drink eat play do "
    "crochet have teach coach call visit watch listen meet sleep clean spend code see host foster"
)
OFTEN = re.compile(
    r"(?i)\b(?:every (?:other |second |single |two |three )?(?:day|week|weekend|month|year|morning"
    r"|evening|night|afternoon|summer|winter|mon|tues|wednes|thurs|fri|satur|sun)\w*|(?:once|twice"
    r"|thrice|(?:two|three|four|five|six|several|\d|a few|a couple(?: of)?)(?: or \w+)? (?:times"
    r"|days|nights|mornings|evenings|hours|km|miles)) (?:a|per|each|every) (?:day|week|month|year)"
    r"|daily|weekly|monthly|(?:(?:on |at |in the |most )?(?:mon|tues|wednes|thurs|fri|satur"
    r"|sun)days)|(?:on|at) (?:the )?weekends?|in the (?:mornings|evenings|afternoons)|most (?:days"
    r"|mornings|evenings|nights|weekends)|each (?:day|morning|evening|week|night)|regularly"
    r"|before work|after work|to work|all year round|instead)\b"
)
_NOT_LIKED = tuple(
    (
        "to /the idea/the way/the look/the sound/the thought/the fact/how /when /if /it /that /"
        "seeing you/hearing/what /being able/getting to/your/working with you/the suggestion/"
        "the concept/the feel/the format/the result/the plan/help/more /some /an example/"
        "the chance/a few/the opportunity/the progress/him/her/them/learning about these/"
        "talking to/having/spending time/the vibe/seeing/all of/both/every/each/knowing/feeling/"
        "making a difference/giving back/this/the name/the new/the process/the support/"
        "the challenge/exploring these/sharing/trying/the energy/the atmosphere/creating/"
        "using my/for /myself/the first/the second/the last/how/an /a good/a nice/a quick/"
        "a little/a bit/so much/the rush/about/from/connecting/helping/meeting/the option"
    ).split("/")
)


def liked(words: str) -> bool:
    """Whether it is a lasting taste rather than a reaction to what was just said."""
    low = re.sub(r"\A(?:the (?:smell|taste) of|being called) (?=[\w-]+\Z)", "", words.lower())
    if low.startswith("my "):
        return len(words.split()) <= 3 and not low.endswith((" ideas", " suggestions", " way"))
    if low.startswith(("the ", "our ", "their ", "his ", "being ", "not ", "doing something")):
        named = any(part[:1].isupper() for part in words.split()[1:])
        return named and " they have " not in low and not low.endswith((" ideas", " suggestions"))
    return (
        not low.startswith(_NOT_LIKED)
        and len(words.split()) <= 8
        and not low.endswith((" to", " like", " of"))
        and not low.endswith((" ideas", " suggestions", " tips", " options", " list", " examples"))
    )


def _is_collected(words: str) -> bool:
    return liked(words) and not words.startswith(("data", "all", "and", "information", "feedback"))


def _is_preferred(words: str) -> bool:
    if " over " in words or " to " in words[3:] or " than " in words or " instead of " in words:
        return True
    vague = words.lower().startswith(("to ", "if", "that", "the ", "it", "not ", "a ", "my "))
    return not vague and (" " in words or words[:1].isupper() or words.endswith("s"))


_LIKES: Options = {"type": "preference", "stance": "positive", "accepts": liked, "past": False}
_DISLIKES: Options = {"type": "preference", "stance": "negative", "accepts": liked, "past": False}
_likes = rows_of("likes", "like {o}")
_is_a = rows_of("is_a", "be a {o}")
_dislikes = rows_of("dislikes", "dislike {o}", **_DISLIKES)
_does = rows_of("does", "{verb} {o}")
_ROWS = (
    _likes(rf"like love enjoy adore: {_LIKED}", "{verb} {o}", animals=True, **_LIKES),
    _likes(
        r"like love: to (?P<o>(?:hike|swim|cook|bake|paint|draw|read|travel|run|dance|sing|garden"
        r"|ski|surf|sail|climb|fish|knit|cycle|camp|write|sketch|ride|dive|skate)\b.*)",
        "{verb} to {o}",
        type="preference",
        stance="positive",
    ),
    _likes(
        r"be: (?:an? )?(?:big |huge |massive |die-hard |real |great |avid |lifelong "
        r"|long-time )?(?:fan of|keen on|fond of|obsessed with|passionate about|crazy about"
        r"|mad about|hooked on|addicted to|in love with|partial to|sucker for"
        r"|(?:(?:really|very|so|super) )?into) (?P<o>.+)",
        **_LIKES,
    ),
    _likes(
        r"be: an? (?:big |huge |avid |real |total )?(?P<o>(?!(?:huge|big|great"
        r"|total|avid|massive|real)\b)[\w-]+(?: [\w-]+)?) (?P<org>lover|fan"
        r"|enthusiast|nerd|geek|buff|junkie|addict|fanatic|aficionado|nut)\Z",
        "be a {o} {org}",
        **_LIKES,
    ),
    _is_a(
        r"be: an? (?P<o>(?:night owl|early bird|early riser|morning person|night person|introvert"
        r"|extrovert|perfectionist|homebody|bookworm|foodie|cat person|dog person|minimalist"
        r"|optimist|pessimist|vegetable hater|feminist|christian|catholic|muslim|jew|buddhist|hindu"
        r"|atheist|agnostic|quaker|veteran|widow|widower|(?:single|stay-at-home) (?:mother|mum|mom"
        r"|father|dad|parent)|new (?:mother|mum|mom|father|dad|parent)|people person|trans woman"
        r"|trans man|first-generation student))\b"
    ),
    row(
        r"be: the (?P<o>(?:oldest|eldest|youngest|middle(?: one| child)?|second|third) of (?:two"
        r"|three|four|five|six|seven|eight|nine|ten|\d+))(?=\Z|,| and\b"
        r"| (?:children|siblings|kids|brothers|sisters|girls|boys)\b)",
        "has_sibling",
        "be the {o}",
    ),
    _is_a(
        rf"be: (?P<o>{IDENTITIES})\b",
        "be {o}",
    ),
    _dislikes(rf"hate dislike detest loathe despise: {_LIKED}", "{verb} {o}", animals=True),
    _dislikes(r"can: (?:stand|bear|abide) (?P<o>.+)", flips=True, many=True),
    _dislikes(r"care: (?:much )?for (?!my |the )(?P<o>.+)", flips=True),
    _likes(r"can: get enough of (?P<o>.+)", flips=True, **_LIKES),
    _likes(
        r"go: (?:right |completely |really |totally |a bit )?off (?P<o>.+?)"
        r"(?: (?:a (?:bit|little)|lately|completely|altogether))?\Z",
        mode=Mode.ENDED,
        **_LIKES,
    ),
    _likes(r"fall: (?:out of love with|out with) (?P<o>.+)", mode=Mode.ENDED, **_LIKES),
    _dislikes(
        r"be: (?:(?:so|really|getting|just|getting a bit|a bit|totally) )*"
        r"(?:tired of|sick of|bored of|bored with|fed up with) (?P<o>.+)"
    ),
    _likes(r"come: (?:a)?round to (?P<o>.+?)(?: a bit| somewhat)?\Z", mode=Mode.BEGAN, **_LIKES),
    _does(
        r"play sing be: (?P<o>in (?:an?|the|my) (?:[\w-]+ )?(?:band|orchestra|quartet|team|league"
        r"|ensemble|choir|book club))\b",
        past=False,
    ),
    row(
        r"can: (?:eat|have|digest|tolerate) (?P<o>(?:any )?(?:dairy|gluten|nuts|peanuts|shellfish"
        r"|eggs|meat|wheat|lactose|milk|fish|pork|soy|sugar|spicy food|caffeine|tomatoes|onions"
        r"|mushrooms)(?:,? (?:and|or) \w+)?)",
        "diet",
        "eat {o}",
        aspect="{o}",
    ),
    _does(
        r"can: do (?P<o>\d+ (?!(?:min|hour|day|week|month|year|km|kg|am\b|pm\b))[a-z][\w-]+)\b",
        "can do {o}",
    ),
    _does(
        r"can: (?P<o>(?:hold|lift|bench(?: press)?|squat|deadlift|swim|row|cycle|walk"
        r"|run) (?:[\w-]+ )"
        r"{0,4}\d+ ?(?:kg|kilos?|lbs?|pounds|k|km|miles?|m|metres|meters|lengths|laps|minutes?"
        r"|mins?|seconds?|hours?))\b",
        "can {o}",
    ),
    row(r"can: (?:speak) (?P<o>[A-Z].+)", "speaks", "speak {o}", many=True),
    row(
        r"can: (?P<o>(?:swim|drive|cook|play (?:the )?\w+|ski|juggle|code|ride a (?:bike"
        r"|horse)))\Z",
        "knows",
        "can {o}",
    ),
    row(
        r"prefer: (?P<o>.+?(?: (?:over|to|rather than|instead of|than) .+)?)\Z",
        "prefers",
        "prefer {o}",
        type="preference",
        stance="positive",
        to_comma=False,
        accepts=_is_preferred,
    ),
    _does(rf"play: {_PLAYED}", confidence=0.85),
    _does(rf"practice practise do: {_DONE}"),
    _does(
        r"take start begin: (?:up |doing |playing |practi[sc]ing )(?P<o>[\w-]+(?: [\w-]+)?)\Z",
        "do {o}",
        mode=Mode.BEGAN,
    ),
    _does(
        rf"stop quit: (?:doing |playing |practi[sc]ing |going )?(?P<o>(?:{_PASTIMES}"
        r"|coffee|caffeine|sugar|gluten|social media|facebook|instagram|twitter|netflix)\b.*)",
        "do {o}",
        mode=Mode.ENDED,
    ),
    _does(
        rf"pick get: (?:the |my )?(?P<o>{_PASTIMES}) (?:back )?up again\b.*",
        "do {o}",
        mode=Mode.BEGAN,
    ),
    _does(r"keep: (?P<o>(?:honey)?bees|bonsai|tropical fish|koi|a (?:diary|journal))\b"),
    _does(rf"collect: {_LIKED}", accepts=_is_collected),
    row(
        r"take drink have like: (?P<o>my (?:tea|coffee|steak|eggs|porridge) (?:black|white|strong"
        r"|weak|plain|rare|medium|scrambled|poached|fried|iced|with|without)\b.*)",
        "prefers",
        "{verb} {o}",
        type="preference",
        stance="positive",
        past=False,
    ),
    _does(r"wear: (?P<o>glasses|contact lenses|contacts|hearing aids?|braces|a hijab|size \d+)"),
    row(r"take wear: (?P<o>(?:a )?size \d+(?: shoes?)?)", "wears", "{verb} {o}"),
    _does(r"stay: (?P<o>with (?:us|me))\b.*", past=False),
    _does(r"be: (?P<o>on (?:the|a) waiting list for .+)", past=False),
    row(
        r"be: (?:\w+ )?(?P<o>good at (?!it\b|what\b)(?!.* why\b)\w+(?: \w+)?)\Z", "knows", "be {o}"
    ),
    _does(r"volunteer: (?P<o>(?:at|with|for) .+)", past=False),
)

TASTES = table_of(_ROWS)
HABIT_VERBS = frozenset(_HABITS.split())
# Of these it is worth knowing that somebody never does them.
AVOIDED_VERBS = frozenset(
    "do eat drink fly play drive swim cook smoke dance gamble wear ride".split()
)
