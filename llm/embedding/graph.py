"""all-MiniLM-L6-v2 as an ONNX graph: BERT with six layers, mean pooling, unit length.

In float32, or with its matrix products in 8-bit integers.

ONNX Runtime's fused operators (domain com.microsoft, described in its ContribOperators.md) do
attention, the layer norms and the exact, erf-based GELU in one step each, which is what makes
it fast on a CPU.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

# Levels on either side of zero.
LEVELS = 127
# The zero point of quantized tokens, which are unsigned: processors have instructions for products
# of unsigned and signed integers.
_ZERO = 128
# Avoids a zero scale for a token of zeros.
_SMALLEST_SCALE = 1e-9
LAYERS = 6
HEADS = 12
DIMENSIONS = 384
LAYER_NORM_EPSILON = 1e-12
# Old enough for all supported ONNX Runtimes; the graph needs nothing newer.
_OPSET = 17
_IR_VERSION = 8
_FUSED = "com.microsoft"
_Floats = NDArray[np.float32]
Weights = Mapping[str, _Floats]


class _Graph:
    """Collects nodes and constants; every method returns the name of the value it adds."""

    def __init__(self, *, int8: bool) -> None:
        self.int8 = int8
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def constant(self, name: str, value: NDArray[np.generic]) -> str:
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def add(self, op: str, output: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        node = helper.make_node(op, list(inputs), [output], output, domain=domain, **attributes)
        self.nodes.append(node)
        return output

    def fused(self, op: str, output: str, *inputs: str, **attributes: Any) -> str:
        return self.add(op, output, *inputs, domain=_FUSED, **attributes)


def build_graph(weights: Weights, *, int8: bool = False) -> onnx.ModelProto:
    """Inputs `input_ids` and `attention_mask`, int32 (batch, tokens), padded on the right;
    output `embeddings`, float32 (batch, 384), of unit length."""
    graph = _Graph(int8=int8)
    hidden = _embeddings(graph, weights)
    for number in range(LAYERS):
        hidden = _layer(graph, weights, number, hidden)
    _pool(graph, hidden)
    tokens = ["batch", "tokens"]
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT32, tokens)
        for name in ("input_ids", "attention_mask")
    ]
    output = helper.make_tensor_value_info("embeddings", TensorProto.FLOAT, ["batch", DIMENSIONS])
    return helper.make_model(
        helper.make_graph(graph.nodes, "all-MiniLM-L6-v2", inputs, [output], graph.constants),
        opset_imports=[helper.make_opsetid("", _OPSET), helper.make_opsetid(_FUSED, 1)],
        ir_version=_IR_VERSION,
    )


def _embeddings(graph: _Graph, weights: Weights) -> str:
    prefix = "embeddings"
    # All texts have one segment, so its embedding is constant: add it to the positions.
    segment = weights[f"{prefix}.token_type_embeddings.weight"][0]
    positions = weights[f"{prefix}.position_embeddings.weight"] + segment
    graph.nodes.append(
        helper.make_node(
            "EmbedLayerNormalization",
            [
                "input_ids",
                "",
                graph.constant("words", weights[f"{prefix}.word_embeddings.weight"]),
                graph.constant("positions", positions),
                "",
                *_norm(graph, weights, f"{prefix}.LayerNorm"),
            ],
            ["embedded", "embedded_mask_index"],
            domain=_FUSED,
            epsilon=LAYER_NORM_EPSILON,
        )
    )
    return "embedded"


def _layer(graph: _Graph, weights: Weights, number: int, hidden: str) -> str:
    prefix, out = f"encoder.layer.{number}", f"layer{number}"
    attend = _attention_of_products if graph.int8 else _attention
    attended = attend(graph, weights, f"{prefix}.attention.self", f"{out}.attention", hidden)
    projected, bias = _product(graph, weights, f"{prefix}.attention.output.dense", attended)
    norm = _norm(graph, weights, f"{prefix}.attention.output.LayerNorm")
    attended = _add_and_norm(graph, f"{out}.attended", projected, hidden, norm, bias)

    wide, bias = _product(graph, weights, f"{prefix}.intermediate.dense", attended)
    wide = graph.fused("BiasGelu", f"{out}.gelu", wide, bias)
    projected, bias = _product(graph, weights, f"{prefix}.output.dense", wide)
    norm = _norm(graph, weights, f"{prefix}.output.LayerNorm")
    return _add_and_norm(graph, out, projected, attended, norm, bias)


def _attention(graph: _Graph, weights: Weights, prefix: str, output: str, hidden: str) -> str:
    matrix, bias = _query_key_value(weights, prefix)
    inputs = (
        hidden,
        graph.constant(f"{prefix}.qkv", matrix),
        graph.constant(f"{prefix}.qkv_bias", bias),
        "attention_mask",
    )
    return graph.fused("Attention", output, *inputs, num_heads=HEADS)


def _attention_of_products(
    graph: _Graph, weights: Weights, prefix: str, output: str, hidden: str
) -> str:
    """Attention on quantized products; the fused operator would compute them in float32."""
    matrix, bias = _query_key_value(weights, prefix)
    product = quantized_product(graph, f"{prefix}.qkv", hidden, matrix)
    parts = [f"{prefix}.{part}" for part in ("query", "key", "value")]
    lengths = graph.constant(f"{prefix}.lengths", np.array([DIMENSIONS] * 3, dtype=np.int64))
    split = helper.make_node("Split", [product, lengths], parts, f"{prefix}.split", axis=2)
    graph.nodes.append(split)
    inputs = (*parts, graph.constant(f"{prefix}.qkv_bias", bias), "attention_mask")
    return graph.fused("MultiHeadAttention", output, *inputs, num_heads=HEADS)


def _query_key_value(weights: Weights, prefix: str) -> tuple[_Floats, _Floats]:
    """Their three matrices side by side, and their biases."""
    parts = [f"{prefix}.{part}" for part in ("query", "key", "value")]
    matrix = np.concatenate([weights[f"{part}.weight"].T for part in parts], axis=1)
    return matrix, np.concatenate([weights[f"{part}.bias"] for part in parts])


def _product(graph: _Graph, weights: Weights, name: str, value: str) -> tuple[str, str]:
    """The product, and the bias that the next, fused operator adds."""
    # Stored for x @ W.T; MatMul multiplies from the right.
    matrix = weights[f"{name}.weight"].T
    bias = graph.constant(f"{name}.bias", weights[f"{name}.bias"])
    if graph.int8:
        return quantized_product(graph, name, value, matrix), bias
    constant = graph.constant(f"{name}.weight", matrix)
    return graph.add("MatMul", f"{name}.product", value, constant), bias


def _norm(graph: _Graph, weights: Weights, name: str) -> tuple[str, str]:
    return (
        graph.constant(f"{name}.weight", weights[f"{name}.weight"]),
        graph.constant(f"{name}.bias", weights[f"{name}.bias"]),
    )


def _add_and_norm(
    graph: _Graph, output: str, value: str, skip: str, norm: tuple[str, str], bias: str
) -> str:
    epsilon = LAYER_NORM_EPSILON
    return graph.fused("SkipLayerNormalization", output, value, skip, *norm, bias, epsilon=epsilon)


def _pool(graph: _Graph, hidden: str) -> None:
    """The mean over the real tokens, scaled to unit length.

    Normalising makes the mean's division unnecessary: the sum has the same direction.
    """
    mask = graph.add("Cast", "mask", "attention_mask", to=TensorProto.FLOAT)
    axis = graph.constant("mask_axis", np.array([1], dtype=np.int64))
    row = graph.add("Unsqueeze", "mask_row", mask, axis)
    summed = graph.add("MatMul", "summed", row, hidden)
    flat = graph.add("Squeeze", "pooled", summed, axis)
    graph.add("LpNormalization", "embeddings", flat, axis=1, p=2)


class Graph(Protocol):
    """The graph under construction; each method returns the name of the value it adds."""

    def constant(self, name: str, value: NDArray[np.generic]) -> str: ...

    def add(self, op: str, output: str, *inputs: str, **attributes: Any) -> str: ...


def quantized_product(graph: Graph, name: str, value: str, matrix: NDArray[np.float32]) -> str:
    """The name of `value @ matrix`, float32 (batch, tokens, columns)."""
    zero = graph.constant(f"{name}.zero", np.array(_ZERO, dtype=np.uint8))
    quantized, token_scales = _tokens(graph, name, value, zero)
    columns, scales = quantized_columns(matrix)
    counted = graph.add(
        "MatMulInteger",
        f"{name}.counted",
        quantized,
        graph.constant(f"{name}.weight", columns),
        zero,
    )
    counted = graph.add("Cast", f"{name}.float", counted, to=TensorProto.FLOAT)
    by_token = graph.add("Mul", f"{name}.by_token", counted, token_scales)
    return graph.add("Mul", f"{name}.product", by_token, graph.constant(f"{name}.scales", scales))


def quantized_columns(
    matrix: NDArray[np.float32],
) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Integers from -127 to 127, and each column's scale."""
    scales = np.maximum(np.abs(matrix).max(axis=0) / LEVELS, _SMALLEST_SCALE)
    return np.rint(matrix / scales).astype(np.int8), scales.astype(np.float32)


def _tokens(graph: Graph, name: str, value: str, zero: str) -> tuple[str, str]:
    """Unsigned integers of the same shape, and a scale for each token."""
    largest = graph.add(
        "ReduceMax",
        f"{name}.largest",
        graph.add("Abs", f"{name}.sizes", value),
        axes=[-1],
        keepdims=1,
    )
    step = graph.constant(f"{name}.step", np.array(1 / LEVELS, dtype=np.float32))
    smallest = graph.constant(f"{name}.smallest", np.array(_SMALLEST_SCALE, dtype=np.float32))
    steps = graph.add("Mul", f"{name}.steps", largest, step)
    scales = graph.add("Max", f"{name}.token_scales", steps, smallest)
    scaled = graph.add("Div", f"{name}.scaled", value, scales)
    one = graph.constant(f"{name}.one", np.array(1, dtype=np.float32))
    return graph.add("QuantizeLinear", f"{name}.tokens", scaled, one, zero), scales
