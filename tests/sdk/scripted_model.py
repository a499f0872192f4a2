"""A language model that reads a few sentences as one would, for the scripted server."""

from __future__ import annotations

import json
import re

from tests.model_server import Request


def stated(text, predicate, object, *, subject="User", **more):
    return {
        "subject": subject,
        "subject_kind": "person",
        "predicate": predicate,
        "object": object,
        "text": text,
        **more,
    }


GOOGLE = {"object_kind": "organisation"}
# By a piece of the message.
SAYS = {
    "My name is Bob": [stated("User's name is Bob", "name", "Bob")],
    "User lives in NYC": [stated("User lives in NYC", "lives_in", "NYC")],
    "User moved to San Francisco": [
        stated("User lives in San Francisco", "lives_in", "San Francisco")
    ],
    "User likes Python": [stated("User likes Python", "likes", "Python", type="preference")],
    "User works in tech": [stated("User works in tech", "works_at", "tech")],
    "User works at Google as a senior engineer": [
        stated("User works at Google as a senior engineer", "works_at", "Google", **GOOGLE)
    ],
    "User is vegetarian": [stated("User is vegetarian", "diet", "vegetarian")],
    "User started eating meat again": [
        stated("User eats meat again", "diet", "vegetarian", negated=True)
    ],
    "I have a cat called Miso": [stated("User has a cat called Miso", "has_pet", "Miso")],
    "Alice works at Google": [
        stated("Alice works at Google", "works_at", "Google", subject="Alice", **GOOGLE)
    ],
    "She plays the cello": [stated("Alice plays the cello", "plays", "cello", subject="Alice")],
    "I speak French": [stated("User speaks French", "speaks", "French")],
    "I speak Italian": [stated("User speaks Italian", "speaks", "Italian")],
    "I speak German": [stated("User speaks German", "speaks", "German")],
    "I speak Spanish": [stated("User speaks Spanish", "speaks", "Spanish")],
    "I speak Portuguese": [stated("User speaks Portuguese", "speaks", "Portuguese")],
}
# By what is new: the known fact that it is about, and what becomes of it.
BECOMES = {
    "User likes Python": ("likes Python", {"verdict": "NONE"}),
    "User lives in San Francisco": ("NYC", {"verdict": "UPDATE", "change": "shift"}),
    "User works at Google as a senior engineer": (
        "works in tech",
        {
            "verdict": "UPDATE",
            "change": "refinement",
            "text": "User works in tech, at Google, as a senior engineer",
        },
    ),
    "User eats meat again": ("is vegetarian", {"verdict": "DELETE"}),
}


def play(request: Request) -> str:
    shown = request.body["messages"][-1]["content"]
    if "<facts>" in shown:
        return json.dumps({"judgements": [_judged(one) for one in _quoted(shown, "facts")]})
    turns = _quoted(shown, "conversation")
    facts = [
        {"turn": turn["turn"], "quote": piece, **fact}
        for turn in turns
        for piece, said in SAYS.items()
        if piece in turn["text"]
        for fact in said
    ]
    return json.dumps({"facts": facts})


def _quoted(text, tag):
    return json.loads(re.search(rf"<{tag}>\n(.*)\n</{tag}>", text, re.DOTALL)[1])


def _judged(one):
    piece, judgement = BECOMES.get(one["text"], ("", {}))
    for known in one["known"]:
        if piece and piece in known["text"]:
            return {"new": one["new"], "fact": known["fact"], **judgement}
    return {"new": one["new"], "verdict": "ADD"}
