"""Repeated questions: the effect of a user's earlier questions on recall.

Every question is asked once, and each becomes a chat of its own in the palace: the question, and
the reply that quotes what was found, as the product writes it without a model. Half of them are
filed as people type in a hurry: without a question mark, as a command, with "I forgot". Then all of
them are asked a second time, every other one in other words. Those are asked in the palace without
the chats as well, so that nothing but the chats differs; what other words cost is told apart.
"""

from __future__ import annotations

import dataclasses
import re
import zlib
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from tqdm import tqdm

from bench.command import BenchmarkCommand, Run, Wanted
from bench.datasets import Case, Question
from bench.logs import Folder, Log
from bench.metrics import mean, scores
from bench.runs import ask, is_taken_in, palace_of, prepare, reranks, take_in
from chat.mining_queue import SOURCE
from chat.prompt import NO_MODEL, QUOTED, extractive_reply
from language.transcripts import Transcript, Turn
from palace.models import Palace
from palace.recall import RecallRequest, recall

_CHAT = "asked before: "
_QUESTION, _REPLY = "question", "reply"
# The deepest rank considered.
PLACES = 10
_COMPARED = ("turn_recall@10", "session_recall@10")

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
# "When did Ann Lee move": the helper goes behind whom it is about, as in a statement.
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
_TYPED = ("{}", "@loci {}", "{} again, i keep forgetting")
_TYPED_ROUNDABOUT = ("I forgot {}.", "Can't remember {}", "look up {}")
_FRAMES_OF_OTHERS = ("One more thing: {}?", "Just wondering: {}?", "Quick question, {}?")


def asked_again(case: Case, palace: Palace, recipe: str, log: Log) -> Case:
    """The case with a chat added for each question, and the questions to repeat.

    Args:
        palace: That person's palace without those chats: the replies quote it.
        log: Records whether the chats were added already; then they are not created.
    """
    questions = list(case.questions)
    questions[1::2] = reworded_half(case).questions
    again = dataclasses.replace(case, id=f"{case.id} asked again", questions=tuple(questions))
    if is_taken_in(again, log):
        return again
    chats = tuple(_chats(case, palace, recipe))
    return dataclasses.replace(again, transcripts=case.transcripts + chats)


def reworded_half(case: Case) -> Case:
    """Every other question, in other words."""
    half = (
        dataclasses.replace(question, text=reword(question.text))
        for question in case.questions[1::2]
    )
    return dataclasses.replace(case, questions=tuple(half))


def _chats(case: Case, palace: Palace, recipe: str) -> Iterator[Transcript]:
    prepare(palace, recipe)
    latest = max(each.turns[-1].said_at for each in case.transcripts if each.turns)
    questions = tqdm(case.questions, desc=f"{case.id} !", leave=False, disable=None)
    for place, question in enumerate(questions):
        # Both halves of the second asking have as many of each.
        if place // 2 % 2:
            question = dataclasses.replace(question, text=respell(question.text))
        yield _chat(palace, question, question.now or latest, recipe)


def _chat(palace: Palace, question: Question, now: datetime, recipe: str) -> Transcript:
    found = recall(
        palace,
        RecallRequest(question.text, top_k=QUOTED, now=now, recipe=recipe, rerank=reranks(recipe)),
    )
    reply = extractive_reply(found.hits, why=NO_MODEL)
    return Transcript(
        source=SOURCE,
        external_id=f"{_CHAT}{question.id}",
        title="",
        turns=(
            Turn(_QUESTION, "user", question.text, now),
            Turn(_REPLY, "assistant", reply, now + timedelta(seconds=5)),
        ),
    )


_Line = Mapping[str, Any]


def asked_again_report(
    first: Sequence[_Line], reworded: Sequence[_Line], second: Sequence[_Line]
) -> dict[str, Any]:
    """Compare recall before and after the chats were filed, for each half and overall.

    Args:
        first: Log lines of the first run.
        reworded: Of the questions in other words, asked before the chats were filed.
        second: Of all, asked after they were filed.
    """
    as_first_worded = {line["id"]: line for line in first}
    before = {(line["id"], line["question"]): line for line in (*first, *reworded)}
    pairs = [(before[line["id"], line["question"]], line) for line in second]
    halves: dict[str, list[tuple[_Line, _Line]]] = {"word_for_word": [], "reworded": []}
    for pair in pairs:
        same = pair[1]["question"] == as_first_worded[pair[1]["id"]]["question"]
        halves["word_for_word" if same else "reworded"].append(pair)
    halves["overall"] = pairs
    report = {name: _compared(half) for name, half in halves.items() if half}
    if other_words := halves["reworded"]:
        worded = [(as_first_worded[line["id"]], line) for line, _ in other_words]
        report["reworded"]["other_words"] = _losses(worded)
    return report


def _compared(pairs: Sequence[tuple[_Line, _Line]]) -> dict[str, Any]:
    places = [_own(hit) for _, second in pairs for hit in second["hits"][:PLACES]]
    firsts = [_own(hit) for _, second in pairs for hit in second["hits"][:1]]
    return {
        "questions": len(pairs),
        **_losses(pairs),
        f"own_questions@{PLACES}": _share(places, _QUESTION),
        f"own_replies@{PLACES}": _share(places, _REPLY),
        "own_questions@1": _share(firsts, _QUESTION),
        "own_replies@1": _share(firsts, _REPLY),
    }


def _losses(pairs: Sequence[tuple[_Line, _Line]]) -> dict[str, dict[str, float]]:
    values = [(dict(scores(first)), dict(scores(second))) for first, second in pairs]
    losses = {}
    for name in _COMPARED:
        both = [(one[name], two[name]) for one, two in values if name in one]
        if both:
            before, after = mean([one for one, _ in both]), mean([two for _, two in both])
            losses[name] = {
                "before": round(before, 4),
                "after": round(after, 4),
                "loss": round(before - after, 4),
            }
    return losses


def _own(hit: Mapping[str, Any]) -> str:
    """Which part of an added chat a message is; empty for others."""
    return str(hit["turn"]).rpartition("/")[2] if hit["session"].startswith(_CHAT) else ""


def _share(places: Sequence[str], part: str) -> float:
    return round(places.count(part) / len(places), 4) if places else 0.0


def reword(question: str) -> str:
    """A paraphrase of `question`; never the same text."""
    text = _WORD.sub(lambda found: _OTHER_WORD[found[0]], question.strip())
    text, front = _without_tail(text)
    asked = _lowered(text.rstrip("?.! "))
    statement = _INVERTED.sub(lambda f: f"{_lowered(f[1])} {f[3]} {f[2]} ", text.rstrip("?.! "))
    indirect = statement != text.rstrip("?.! ")
    frames = _FRAMES if indirect else _FRAMES_OF_OTHERS
    frame = frames[zlib.crc32(question.encode()) % len(frames)]
    reworded = frame.format(statement if indirect else asked)
    return f"{front[0].upper()}{front[1:]}: {_lowered(reworded)}" if front else reworded


def respell(question: str) -> str:
    """The question as it is typed in a hurry."""
    text = question.strip().rstrip("?.! ")
    plain = _lowered(text)
    statement = _INVERTED.sub(lambda f: f"{_lowered(f[1])} {f[3]} {f[2]} ", text)
    frames = _TYPED if statement == text else (*_TYPED, *_TYPED_ROUNDABOUT)
    frame = frames[zlib.crc32(question.encode()) % len(frames)]
    return frame.format(statement if frame in _TYPED_ROUNDABOUT else plain)


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


class AskedAgainCommand(BenchmarkCommand):
    """A benchmark that can repeat its questions once they are in the palace."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--asked-again",
            action="store_true",
            help="full, smoke, retrieve: file the questions as chats, then ask again.",
        )

    def run(self, wanted: Wanted) -> Run:
        run = super().run(wanted)
        return dataclasses.replace(run, asked_again=bool(wanted.more.get("asked_again")))

    def finished(self, run: Run) -> dict[str, Any]:
        if run.asked_again:
            self._ask_again(run)
        return super().finished(run)

    def report(self, folder: Folder) -> dict[str, Any]:
        report, again = super().report(folder), folder.again
        second = again.retrieval.lines()
        if not second:
            return report
        first, reworded = folder.retrieval.lines(), again.reworded.lines()
        return {**report, "asked_again": asked_again_report(first, reworded, second)}

    def _ask_again(self, run: Run) -> None:
        """Resumes where an earlier process was stopped."""
        folder = run.folder.again
        for log in (folder.ingest, folder.retrieval, folder.reworded):
            log.mend()
        done = {line["id"] for line in folder.retrieval.lines()}
        controls = {line["id"] for line in folder.reworded.lines()}
        for case in run.cases:
            half = reworded_half(case)
            if not controls.issuperset(question.id for question in half.questions):
                for line in ask(half, palace_of(case), run.recipe, controls):
                    folder.reworded.append(line)
            if done.issuperset(question.id for question in case.questions):
                continue
            again = asked_again(case, palace_of(case), run.recipe, folder.ingest)
            palace = take_in(again, folder.ingest)
            for line in ask(again, palace, run.recipe, done):
                folder.retrieval.append(line)
