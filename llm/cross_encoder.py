"""A cross-encoder on ONNX Runtime, in this process.

Its folder is one as the usual tools export it (`optimum-cli export onnx`, or the published ones of
sentence-transformers): `tokenizer.json`, and `model.onnx` there or in a folder `onnx`. The model's
inputs are `input_ids`, `attention_mask` and, in some, `token_type_ids`, (pairs, tokens) each; its
output has one column, the score, or two, of which the second is that of "fits".
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer

from llm import onnx_runtime
from llm.errors import RerankerMisconfigured, RerankerUnavailable

# Question and passage together; of a longer pair the end of the longer part is not read.
MAX_TOKENS = 512
# A batch: its pairs times its longest text. Attention takes memory by the square of the length.
BATCH_TOKENS = 1024

MODEL_FILES = ("model.onnx", "onnx/model.onnx")
TOKENIZER_FILE = "tokenizer.json"
SETTINGS_HINT = "LOCI_RERANKER_PATH names the folder of the reranker; leave it empty to have none."

_INPUTS = ("input_ids", "attention_mask", "token_type_ids")
_NUMBERS: dict[str, type[np.signedinteger[Any]]] = {
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
}
_PAD_TOKENS = ("[PAD]", "<pad>")


@dataclass(frozen=True, slots=True)
class Rated:
    """
    Attributes:
        scores: One a passage, in their order; higher is better.
        tokens: How many the model read.
    """

    scores: list[float]
    tokens: int


class CrossEncoder:
    """A tokenizer and an ONNX Runtime session. Safe to share between threads, not over a fork.

    Raises:
        RerankerMisconfigured: there is none that could be loaded.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._tokenizer = _tokenizer(folder)
        self._pad_id = _pad_id(self._tokenizer)
        self._tokenizer.enable_truncation(MAX_TOKENS)
        self._tokenizer.no_padding()
        self._session = _session(folder)
        self._inputs = {each.name: _NUMBERS.get(each.type) for each in self._session.get_inputs()}
        if "input_ids" not in self._inputs or not set(self._inputs) <= set(_INPUTS):
            raise _wrong(
                folder,
                f"takes the inputs {', '.join(self._inputs)}, where a cross-encoder takes "
                f"{', '.join(_INPUTS)}",
            )
        outputs = [each.name for each in self._session.get_outputs()]
        self._output = "logits" if "logits" in outputs else outputs[0]

    def try_out(self) -> None:
        """Rate a short passage and one that is as long as any.

        Raises:
            RerankerMisconfigured: it cannot.
        """
        try:
            self.rate("Does it work?", ["It does.", "word " * MAX_TOKENS], timeout_s=None)
        except RerankerUnavailable as error:
            raise _wrong(self._folder, f"broke off at a first try: {error}") from error

    def rate(self, question: str, passages: Sequence[str], *, timeout_s: float | None) -> Rated:
        """
        Args:
            timeout_s: For all of them together; None to wait as long as it takes.

        Raises:
            RerankerUnavailable: it was not done by then, or broke off.
            RerankerMisconfigured: it does not give one score a passage.
        """
        pairs = [(_readable(question), _readable(passage)) for passage in passages]
        encoded = self._tokenizer.encode_batch(pairs)
        scores = np.empty(len(encoded), dtype=np.float32)
        with _time_limit(timeout_s) as options:
            for places in onnx_runtime.batches([len(each) for each in encoded], BATCH_TOKENS):
                scores[places] = self._run([encoded[place] for place in places], options)
        return Rated(scores.tolist(), sum(len(encoding) for encoding in encoded))

    def _run(self, batch: Sequence[Encoding], options: onnxruntime.RunOptions) -> NDArray[Any]:
        feeds = {name: self._padded(name, batch) for name in self._inputs}
        try:
            (logits,) = self._session.run([self._output], feeds, options)
        except onnx_runtime.ERRORS as error:
            if options.terminate:
                raise RerankerUnavailable(
                    f"The reranker {self._folder.name} was not done in time."
                ) from error
            raise RerankerUnavailable(
                f"The reranker {self._folder.name} broke off: {_first_line(error)}"
            ) from error
        return self._scores(np.asarray(logits), len(batch))

    def _scores(self, logits: NDArray[Any], expected: int) -> NDArray[Any]:
        columns = logits.reshape(expected, -1) if logits.ndim in {1, 2} and logits.size else logits
        if columns.shape not in {(expected, 1), (expected, 2)}:
            raise _wrong(
                self._folder,
                f"answers {expected} pairs with numbers of shape {logits.shape}, where a "
                f"cross-encoder gives one or two for each",
            )
        fits = columns[:, -1]
        if not np.isfinite(fits).all():
            raise RerankerUnavailable(
                f"The reranker {self._folder.name} gave a score that is no number."
            )
        return fits

    def _padded(self, name: str, batch: Sequence[Encoding]) -> NDArray[Any]:
        shape = (len(batch), max(len(encoding) for encoding in batch))
        filler = self._pad_id if name == "input_ids" else 0
        padded = np.full(shape, filler, dtype=self._inputs[name] or np.int64)
        for row, encoding in enumerate(batch):
            padded[row, : len(encoding)] = {
                "input_ids": encoding.ids,
                "attention_mask": encoding.attention_mask,
                "token_type_ids": encoding.type_ids,
            }[name]
        return padded


def _session(folder: Path) -> onnxruntime.InferenceSession:
    found = [folder / name for name in MODEL_FILES if (folder / name).is_file()]
    if not found:
        raise _wrong(folder, f"has no {MODEL_FILES[0]}")
    try:
        return onnx_runtime.open_session(found[0])
    except onnx_runtime.ERRORS as error:
        raise _wrong(
            folder, f"has a {found[0].name} that cannot be run: {_first_line(error)}"
        ) from error


def _tokenizer(folder: Path) -> Tokenizer:
    if not folder.is_dir():
        raise RerankerMisconfigured(f"There is no folder {folder}. {SETTINGS_HINT}")
    try:
        content = (folder / TOKENIZER_FILE).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise _wrong(folder, f"has no {TOKENIZER_FILE}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise _wrong(folder, f"has a {TOKENIZER_FILE} that cannot be read: {error}") from error
    try:
        return Tokenizer.from_str(content)
    except Exception as error:  # The library raises nothing more precise.
        raise _wrong(
            folder, f"has a {TOKENIZER_FILE} that describes no tokenizer: {_first_line(error)}"
        ) from error


def _pad_id(tokenizer: Tokenizer) -> int:
    """Some models detect padding by its id, not by the mask."""
    if tokenizer.padding:
        return int(tokenizer.padding["pad_id"])
    known = (tokenizer.token_to_id(token) for token in _PAD_TOKENS)
    return next((number for number in known if number is not None), 0)


def _wrong(folder: Path, what: str) -> RerankerMisconfigured:
    return RerankerMisconfigured(f"The reranker in {folder} {what}. {SETTINGS_HINT}")


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:200].rstrip(". ")


def _readable(text: str) -> str:
    """Half a surrogate pair, as in cut text, has no UTF-8 form: it becomes a question mark."""
    return text.encode("utf-8", "replace").decode("utf-8")


@contextmanager
def _time_limit(seconds: float | None) -> Iterator[onnxruntime.RunOptions]:
    """Options whose `terminate` becomes true by then, which stops a run at its next operator."""
    options = onnxruntime.RunOptions()
    options.log_severity_level = onnx_runtime.FATAL
    if seconds is None:
        yield options
        return
    timer = threading.Timer(seconds, setattr, (options, "terminate", True))
    timer.daemon = True
    timer.start()
    try:
        yield options
    finally:
        timer.cancel()


_making = threading.Lock()
_loaded: dict[Path, CrossEncoder] = {}
# A parent's session has no threads in a forked child and would wait for them if it were freed.
_orphans: list[dict[Path, CrossEncoder]] = []


def loaded(folder: Path) -> CrossEncoder:
    """This process's cross-encoder, loaded at first use.

    Raises:
        RerankerMisconfigured: it cannot be loaded.
    """
    with _making:
        if folder not in _loaded:
            _loaded[folder] = CrossEncoder(folder)
        return _loaded[folder]


def _forget_after_fork() -> None:
    global _loaded, _making
    _orphans.append(_loaded)
    _loaded = {}
    _making = threading.Lock()


os.register_at_fork(after_in_child=_forget_after_fork)
# The tokenizer's own threads would not survive a fork.
os.environ["TOKENIZERS_PARALLELISM"] = "false"
