"""A trial of the reader: learnt from some messages, measured on others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from tokenizers import Tokenizer

from bench.reader.decoding import Chances, read_values
from bench.reader.examples import Marked, example
from bench.reader.scores import Judged, curve, fit_confidence, judge, reliability
from bench.reader.training import LENGTHS, Floats, Read, encoder, fit, read, scores_of
from llm.embedding.build import read_model
from llm.embedding.local_models import LOCAL_MODELS, MODEL_NAME

Found = list[tuple[Judged, Chances]]


class Trial:
    """
    Raises:
        EmbedderMisconfigured: MiniLM's weights are not there and cannot be fetched.
    """

    def __init__(self, learnt_from: Iterable[Marked], left_out: Iterable[Marked]) -> None:
        weights, tokenizer = read_model(LOCAL_MODELS[MODEL_NAME])
        self._tokenizer = Tokenizer.from_buffer(tokenizer)
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(LENGTHS[-1])
        self._base = encoder(weights)
        self._learnt_from, self._left_out = (
            read([example(each, self._tokenizer) for each in part], self._base)
            for part in (learnt_from, left_out)
        )

    def run(self, epochs: int, report: Callable[[int, float], None]) -> dict[str, Any]:
        """The figures of what was left out. How sure its scores are is fitted on the same messages.

        Args:
            report: Is called after each epoch, with its number and mean loss.
        """
        learnt = fit(self._learnt_from, base=self._base, epochs=epochs, report=report)
        found = _values(self._left_out, scores_of(learnt, self._left_out))
        sure = fit_confidence(found)
        judged = [
            replace(each, span=replace(each.span, score=sure.score(chances)))
            for each, chances in found
        ]
        marked = sum(len(each.example.marked.reading.values) for each in self._left_out)
        return {
            "messages": len(self._learnt_from),
            "left_out": len(self._left_out),
            "values": marked,
            "found": len(judged),
            "exact": curve(judged, marked, exact=True),
            "sharing_words": curve(judged, marked, exact=False),
            "confidence": sure.weights,
            "reliability": reliability(judged),
        }


def _values(examples: Sequence[Read], scores: Sequence[Floats]) -> Found:
    found: Found = []
    for each, rows in zip(examples, scores, strict=True):
        right = each.example.marked.reading
        _mentions, values = read_values(rows, each.example.places)
        judged = judge([span for span, _chances in values], right)
        found += zip(judged, [chances for _span, chances in values], strict=True)
    return found
