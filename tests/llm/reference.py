"""BERT in numpy alone, straight from the weights: slow, plain, and apart from ours."""

from __future__ import annotations

import math

import numpy as np

from llm.embedding.local_models import BLOCK, Blocks
from llm.embedding.model_build import read_model

HEADS = 12

_erf = np.vectorize(math.erf)


def load(model):
    weights, _tokenizer = read_model(model)
    return {name: _unpacked(value) for name, value in weights.items()}


def _unpacked(value):
    if not isinstance(value, Blocks):
        return value
    rows, columns = value.levels.shape
    levels = value.levels.reshape(rows, columns // BLOCK, BLOCK).astype(np.float32) - 8
    return (levels * value.scales[:, :, None]).reshape(rows, columns)


def embed(weights, token_ids, layers):
    """One text's unit vector, from its token ids (with [CLS] and [SEP])."""

    def dense(name, x):
        return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

    def norm(name, x):
        mean = x.mean(-1, keepdims=True)
        variance = ((x - mean) ** 2).mean(-1, keepdims=True)
        scaled = (x - mean) / np.sqrt(variance + 1e-12)
        return scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"]

    def heads(x):
        return x.reshape(len(x), HEADS, -1).transpose(1, 0, 2)

    table = "embeddings.{}_embeddings.weight".format
    x = weights[table("word")][token_ids] + weights[table("position")][: len(token_ids)]
    x = norm("embeddings.LayerNorm", x + weights[table("token_type")][0])
    for layer in range(layers):
        name = f"encoder.layer.{layer}"
        query, key, value = (
            heads(dense(f"{name}.attention.self.{part}", x)) for part in ("query", "key", "value")
        )
        scores = query @ key.transpose(0, 2, 1) / math.sqrt(query.shape[-1])
        weighted = np.exp(scores - scores.max(-1, keepdims=True))
        weighted /= weighted.sum(-1, keepdims=True)
        attended = (weighted @ value).transpose(1, 0, 2).reshape(x.shape)
        attended = dense(f"{name}.attention.output.dense", attended)
        x = norm(f"{name}.attention.output.LayerNorm", attended + x)
        wide = dense(f"{name}.intermediate.dense", x)
        wide = wide * 0.5 * (1 + _erf(wide / math.sqrt(2)))
        x = norm(f"{name}.output.LayerNorm", dense(f"{name}.output.dense", wide) + x)
    pooled = x.mean(0)
    return pooled / np.linalg.norm(pooled)
