"""Paraphrase questions by rules, deterministically.

Three things change, as when somebody asks a second time: a few words give way to others of the same
meaning, a time or condition at the end moves to the front, and the whole is framed as a request.
"""

from __future__ import annotations

import re
import zlib

# Synonyms, replaced in both directions.
_PAIRS = {
    "kids": "children",
    "mom": "mother",
    "dad": "father",
    "movie": "film",
    "movies": "films",
    "job": "work",
    "begin": "start",
    "began": "started",
    "buy": "purchase",
    "bought": "purchased",
    "kind": "sort",
    "kinds": "sorts",
    "type": "category",
    "types": "categories",
    "favorite": "preferred",
    "enjoy": "like",
    "hobbies": "pastimes",
    "activities": "things to do",
    "trip": "journey",
    "pictures": "photos",
    "picture": "photo",
    "recently": "lately",
    "help": "assist",
    "discuss": "talk about",
    "discussed": "talked about",
    "mention": "bring up",
    "mentioned": "brought up",
    "make": "create",
    "made": "created",
    "big": "large",
    "happy": "glad",
    "plan": "intend",
    "plans": "intends",
    "visit": "go to see",
    "visited": "went to see",
    "describe": "characterise",
    "reason": "motive",
    "town": "city",
}
_OTHER_WORD = {**_PAIRS, **{other: word for word, other in _PAIRS.items()}}
_WORD = re.compile(
    r"\b(?:" + "|".join(sorted(map(re.escape, _OTHER_WORD), key=len, reverse=True)) + r")\b"
)
# "… in May 2023?", "… after the concert?": up to the end, and not too much of it.
_TAIL = re.compile(
    r" ((?:in|on|during|after|before|since|when|while) "
    r"(?!(?:in|on|during)\b)(?:(?! that )[^,?]){3,50})\?\s*$"
)
# "When did Ann Lee move": the helper goes behind whom it is about, as in a sentence that tells.
_INVERTED = re.compile(
    r"^((?:What|Which|When|Where|Who|Whom|Why|How)\b(?: [a-z]+){0,3}?) "
    r"(did|does|do|is|was|are|were|has|have|had|will|would|can|could) "
    r"((?:I|you|we|they|he|she|my \w+|[A-Z]\w+(?:(?: and)? [A-Z]\w+)*)) "
)
_FRAMES = (
    "Can you tell me {}?",
    "I would like to know {}.",
    "Do you remember {}?",
    "Please remind me {}.",
)
_FRAMES_OF_OTHERS = ("One more thing: {}?", "Just wondering: {}?", "Quick question, {}?")


def reword(question: str) -> str:
    """A paraphrase of `question`; never the same text."""
    text = _WORD.sub(lambda found: _OTHER_WORD[found[0]], question.strip())
    text, front = _without_tail(text)
    asked = _lowered(text.rstrip("?.! "))
    told = _INVERTED.sub(lambda f: f"{_lowered(f[1])} {f[3]} {f[2]} ", text.rstrip("?.! "))
    indirect = told != text.rstrip("?.! ")
    frames = _FRAMES if indirect else _FRAMES_OF_OTHERS
    frame = frames[zlib.crc32(question.encode()) % len(frames)]
    reworded = frame.format(told if indirect else asked)
    return f"{front[0].upper()}{front[1:]}: {_lowered(reworded)}" if front else reworded


def _without_tail(text: str) -> tuple[str, str]:
    """The question without the time or condition it ends with, and that."""
    tail = _TAIL.search(text)
    # What is left must still ask something.
    if tail is None or len(text[: tail.start()].split()) < 4:
        return text, ""
    return f"{text[: tail.start()]}?", tail[1]


def _lowered(text: str) -> str:
    """Lower-case the first word, unless it is a name."""
    first = text.split(" ", 1)[0]
    return text[:1].lower() + text[1:] if first.lower() in _OPENS else text


_OPENS = frozenset(
    "what which when where who whom whose why how did does do is was are were has have had will"
    " would can could in on during after before since while please just quick one".split()
)
