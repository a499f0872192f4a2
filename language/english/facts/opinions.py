"""Opinions: of what, which facet of it, and whether for or against."""

from __future__ import annotations

import re
from collections.abc import Iterator

from language import english
from language.english.facts.people import Company
from language.english.facts.rules import bare, phrase_of
from language.english.facts.subjects import without_openers
from language.english.facts.vocabulary import is_product
from language.english.grammatical_person import third
from language.facts import Candidate, Thing, Words

_THING = (
    r"(?P<of>(?!(?:it|this|that|he|she|they|there|you|your|what|who|I|we|my|these|those|everyone"
    r"|people|one|here|his|her|their|something|everything|nothing|today|things|life|some|all|most"
    r"|being|having|getting|if|when)\b)[\w'’+#.-]+(?: [\w'’+#.-]+){0,5}?)"
)
_MIGHT = re.compile(r"\b(?:me|is|are|was|find|consider|about)\b")
_TO_ME = re.compile(
    rf"(?i)\A{_THING} (?:really |always |still |totally |just |kind of "
    rf"|absolutely )?(?P<verb>annoys?|bores?|frustrates?|irritates?|bothers?|disgusts?|fascinates?"
    rf"|delights?|amazes?|scares?|terrif(?:y|ies)|drives?|stress(?:es)?|inspires?|calms?"
    rf"|relax(?:es)?) me\b(?P<rest>.*)\Z"
)
_TO_WHAT_END = re.compile(
    r"(?: (?:crazy|nuts|mad|up the wall|insane|a lot|to no end|to death|out))?"
)
_MAD = re.compile(r"crazy|nuts|mad|wall|insane")
_AGAINST = re.compile(
    r"(?i)\A(?:annoy|bore|frustrate|irritate|bother|disgust|scare|terrif|drive|stress)"
)
_I_THINK = re.compile(
    rf"(?i)\A(?:honestly,? |personally,? )?(?:I (?:really |honestly |still |now |do |also "
    rf"|personally |generally )?(?:think|believe|reckon|feel|find|consider)"
    rf"|in my (?:humble )?opinion,?|imo,?|imho,?)(?: that)? {_THING} (?:is|are|was"
    rf"|were) (?P<how>[^,;]+)\Z"
)
_I_FIND = re.compile(
    rf"(?i)\AI (?:really |honestly |still |now |do |also |personally |generally )?(?:find"
    rf"|consider) {_THING} (?P<how>(?:(?:really|very|so|too|far too|quite|pretty|a|an"
    rf"|a bit|incredibly|extremely) )*(?:[a-z]+))(?=\Z|,)"
)
_NAMED_IS = re.compile(
    r"\A(?P<of>(?:the )?[A-Z][\w+#.'’-]*(?: [\w+#'’-]+){0,3}?) (?:is"
    r"|are) (?P<how>(?:(?:just|so|really|absolutely|pretty|quite|way|far|too|very|still"
    r"|actually|the|a|an|honestly|simply|such|not|by far) )*(?P<word>[a-z]+)\b[^,;]*)\Z"
)
# "Generics in TypeScript are a pain", "remote work is the best thing that ever happened to me".
_FACET_IS = re.compile(
    r"\A(?P<of>[a-z][\w-]*(?: [\w-]+)? (?:in|of|on|with) [A-Z][\w+#.]*) (?:is|are)"
    r" (?P<how>[^,;]+)\Z"
)
_BEST_THING = re.compile(
    rf"(?i)\A(?!\w+ing\b){_THING} (?:is|are) (?:honestly |simply |just "
    rf"|by far )?(?P<how>(?:the (?:best|worst) (?:thing|idea|invention|decision|purchase)|a godsend"
    rf"|a lifesaver)\b)[^,;]*\Z"
)
_HOW = re.compile(
    r"(?i)\A(?P<not>not )?(?:(?:just|so|really|absolutely|pretty|quite|way|far|too|very"
    r"|still|actually|the|a|an|honestly|simply|such|by far|kind of|a bit|rather"
    r"|extremely|incredibly|not|of|time|all|much|more|most) )*(?P<word>[a-z]+)\b"
)
_FACET = re.compile(
    r"\A(?:the (?P<aspect>[\w -]+?) (?:of|in|on|at|with) (?P<of>(?:my |the )?[A-Z][\w+#.'’ -]*"
    r"|the \w+|my \w+)|(?P<facet>[a-z][\w-]*(?: [\w-]+)?) (?:of|in|on|with)"
    r" (?P<whole>[A-Z][\w+#.]*))\Z"
)
_OF_ITS = re.compile(
    r"\A(?P<of>(?:the )?[A-Z][\w+#.]*(?: [A-Z][\w+#.]*)*)(?:'s|’s)? (?P<aspect>[a-z][\w -]*)\Z"
)
_FOR = re.compile(
    r"\bfor (?P<aspect>(?!me\b|now\b|a \w+\b|the (?:job|money|price)\b|you\b|sure\b"
    r"|\d)[\w -]{3,40})"
)
_WRONG_ABOUT = re.compile(r"\b(?:wrong|changed my mind|my mind) about (?P<of>[\w -]{3,40})\Z")


def opinions_of(text: str, words: Words, company: Company) -> Iterator[Candidate]:
    if _MIGHT.search(text) is None:
        return
    text, _ = without_openers(text)
    if (moved := _TO_ME.match(text)) is not None:
        yield from _moved(moved, words, company)
        return
    topic = _WRONG_ABOUT.search(text)
    if topic is not None:
        company.topic = topic["of"]
    judged = (
        _I_THINK.match(_with_topic(text, company.topic))
        or (company.topic and _I_THINK.match(f"I think {_with_topic(text, company.topic)}"))
        or _I_FIND.match(text)
        or _of_something_named(text)
    )
    against = _tone(judged["how"]) if judged else None
    if judged is None or against is None:
        return
    yield from _judged(judged["of"], judged["how"], against=against, words=words, company=company)


def _moved(moved: re.Match[str], words: Words, company: Company) -> Iterator[Candidate]:
    """ "Generics annoy me", "meetings drive me mad"."""
    rest = _TO_WHAT_END.match(moved["rest"])
    end = rest[0] if rest else ""
    if moved["verb"].lower().startswith("drive") == bool(_MAD.search(end)):
        effect = f"{moved['verb']} {company.me.label}{end}"
        against = _AGAINST.match(moved["verb"]) is not None
        yield from _opinion(moved["of"], effect, against=against, words=words, company=company)


def _of_something_named(text: str) -> re.Match[str] | None:
    """ "Python is great for scripts"; a sentence about cooking or friends says too little."""
    begun = text if is_product(text) else text[:1].lower() + text[1:]
    found = _FACET_IS.match(begun) or _BEST_THING.match(begun)
    if found is not None:
        return found
    found = _NAMED_IS.match(text)
    if found is None:
        return None
    return found if is_product(found["of"]) else None


def _with_topic(text: str, topic: str) -> str:
    """ "I was wrong about electric cars, I think they are the future"."""
    return re.sub(r"\b(?:they|it)(?= (?:is|are)\b)", topic, text, count=1) if topic else text


def _tone(how: str) -> bool | None:
    """True of what is against, False of what is for; None of what is neither."""
    found = _HOW.match(how)
    if found is None:
        return None
    word = found["word"].lower()
    too = re.match(r"(?:far |way |much )?too ", how, re.IGNORECASE) is not None
    if word not in english.words("praise") and word not in english.words("blame") and not too:
        return None
    against = word in english.words("blame") or too
    return not against if found["not"] else against


def _judged(
    of: str, how: str, *, against: bool, words: Words, company: Company
) -> Iterator[Candidate]:
    said = re.split(
        r"\b(?:because|but|so that|which|when|although|and I|and it|I have|that I)\b", how
    )[0].strip(" ,.")
    facet = _FOR.search(said)
    aspect = facet["aspect"].strip() if facet else ""
    be = "are" if of.lower().endswith("s") and not of.lower().endswith(("ss", "us", "is")) else "is"
    if len(said.split()) > 8:
        return
    yield from _opinion(
        of,
        f"{be} {said}",
        against=against,
        words=words,
        company=company,
        aspect=aspect,
        thought=True,
    )


def _opinion(
    of: str,
    opinion: str,
    *,
    against: bool,
    words: Words,
    company: Company,
    aspect: str = "",
    thought: bool = False,
) -> Iterator[Candidate]:
    whole = phrase_of(of)
    if whole is None or len(whole.split()) > 6:
        return
    subject, facet = _facet_of(whole)
    me, opinion = company.me, third(opinion)
    if subject.lower().startswith(("its ", "his ", "her ", "their ")):
        return
    thing, says = Thing(third(bare(subject)), "item"), f"{third(whole)} {opinion}"
    if not any(sign.isupper() for sign in subject):
        # What has no name is no entity: the opinion is the speaker's, and the thing its aspect.
        thing, facet, opinion = me.thing, third(bare(whole)), says
    text = f"{me.label} thinks {says}" if thought else says
    yield Candidate(
        type="opinion",
        subject=thing,
        predicate="opinion",
        object=opinion,
        text=text[:1].upper() + text[1:],
        words=(words,),
        aspect=(facet or aspect).lower(),
        stance="negative" if against else "positive",
        confidence=0.75,
    )


def _facet_of(whole: str) -> tuple[str, str]:
    """ "TypeScript generics", "Rust's compile times", "the battery of my phone"."""
    facet = _FACET.match(whole) or _OF_ITS.match(whole)
    if facet is None:
        return whole, ""
    of, aspect = (facet["of"], facet["aspect"]) if facet["of"] else (facet["whole"], facet["facet"])
    return re.sub(r"['’]s\Z", "", of), aspect.strip()
