"""`manage.py bench_mining`: the speed of mining, compared with the embedder alone."""

from __future__ import annotations

import json
import time
from argparse import ArgumentParser
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from django.contrib.auth import get_user_model
from tqdm import tqdm

from bench.datasets import longmemeval
from bench.datasets.long_chats import load_beam, load_locomo
from bench.metrics import percentile
from bench.runs import UnrestrictedCommand, own_schema
from bench.synthetic_palace import conversations
from language.transcripts import Transcript
from llm.embedding import deployment_model, max_passage_chars
from llm.embedding.local import embedder
from palace.mining.pipeline import GROUP, mine, mine_many
from palace.models import Palace
from palace.storage import split_text

LOADERS = {"locomo": load_locomo, "longmemeval": longmemeval.load, "beam": load_beam}
# Conversations measured in turn, so that a machine that slows down slows both alike.
ROUND = 10


class Command(UnrestrictedCommand):
    help = (
        "Compare mining with the embedder alone on the same text, in turns, both warm and with "
        f"none of the texts cached. A turn is {ROUND} conversations, filed and mined together, "
        f"about as many messages as an import mines at a time ({GROUP} or more); an import files "
        "each conversation by itself, and keeps its job's progress, which is not measured here. "
        "One JSON line on standard output."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--messages", type=int, default=2000, help="About how many.")
        parser.add_argument("--dataset", choices=LOADERS, help="Made-up talk unless given.")
        parser.add_argument("--data", type=Path, help="The data set's file or folder.")

    def handle(
        self, *, messages: int, dataset: str | None, data: Path | None, **options: Any
    ) -> None:
        source = _from(dataset, data) if dataset and data else conversations(messages)
        with own_schema("bench_mining", keep=False):
            owner = get_user_model().objects.create(username="bench")
            # What a process reads once (the model, the subjects' prototypes) is not the question.
            mine(Palace.objects.own(owner), next(conversations(10, seed=0)))
            rounds = [
                _measure(Palace.objects.own(owner), transcripts)
                for transcripts in tqdm(_rounds(source, messages), unit="round", disable=None)
            ]
        self.stdout.write(json.dumps(_summary(rounds)))


def _from(dataset: str, data: Path) -> Iterator[Transcript]:
    """All conversations; each one's id begins with its person's."""
    for case in LOADERS[dataset](data).cases:
        for transcript in case.transcripts:
            yield replace(transcript, external_id=f"{case.id}/{transcript.external_id}")


def _rounds(transcripts: Iterator[Transcript], messages: int) -> list[list[Transcript]]:
    rounds: list[list[Transcript]] = []
    for number, transcript in enumerate(transcripts):
        if messages <= 0:
            break
        messages -= len(transcript.turns)
        if number % ROUND == 0:
            rounds.append([])
        rounds[-1].append(transcript)
    return rounds


def _measure(palace: Palace, transcripts: list[Transcript]) -> dict[str, float]:
    """Seconds that the bare embedder and mining take for the same messages."""
    texts = [turn.text for transcript in transcripts for turn in transcript.turns]
    limit = max_passage_chars(deployment_model())
    passages = [text[start:end] for text in texts for start, end in split_text(text, limit)]
    bare = embedder()
    started = time.perf_counter()
    tokens = bare.embed(passages)[1]
    embedded = time.perf_counter()
    mine_many(palace, transcripts)
    mined = time.perf_counter()
    return {
        "messages": len(texts),
        "tokens": tokens,
        "bare_s": embedded - started,
        "mining_s": mined - embedded,
    }


def _summary(rounds: list[dict[str, float]]) -> dict[str, Any]:
    total = {name: sum(r[name] for r in rounds) for name in rounds[0]}
    ratios = [r["bare_s"] / r["mining_s"] for r in rounds]
    return {
        "messages": int(total["messages"]),
        "tokens": int(total["tokens"]),
        "bare": _speed(total, total["bare_s"]),
        "mining": _speed(total, total["mining_s"]),
        "mining_of_bare": {
            "overall": round(total["bare_s"] / total["mining_s"], 3),
            "median_round": round(percentile(ratios, 0.5), 3),
        },
    }


def _speed(total: dict[str, float], seconds: float) -> dict[str, float]:
    return {
        "messages_per_s": round(total["messages"] / seconds, 1),
        "tokens_per_s": round(total["tokens"] / seconds),
    }
