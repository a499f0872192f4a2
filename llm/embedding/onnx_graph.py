"""A local model as an ONNX graph: BERT, mean pooling, unit length.

In float32, with its matrix products in 8-bit integers, or with weights of 4 bits.

ONNX Runtime's fused operators (domain com.microsoft, described in its ContribOperators.md) do
attention, the layer norms and the exact, erf-based GELU in one step each, which is what makes
it fast on a CPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from llm.embedding.local_models import (
    BLOCK,
    DIMENSIONS,
    Blocks,
    Floats,
    LocalModel,
    Products,
    Weights,
)

# Levels on either side of zero.
LEVELS = 127
# The zero point of quantized tokens, which are unsigned: processors have instructions for products
# of unsigned and signed integers.
_ZERO = 128
# Avoids a zero scale for a token of zeros.
_SMALLEST_SCALE = 1e-9
HEADS = 12
LAYER_NORM_EPSILON = 1e-12
# As old as the graph allows, for all supported ONNX Runtimes: integers of 4 bits came with 21.
_OPSET, _IR_VERSION = 17, 8
_OPSET_OF_INT4, _IR_VERSION_OF_INT4 = 21, 10
_ZERO_LEVEL = 8
_FUSED = "com.microsoft"
_Matrix = Floats | Blocks


class _Graph:
    """Collects nodes and constants; every method returns the name of the value it adds."""

    def __init__(self, weights: Weights, products: Products) -> None:
        self._weights, self.products = weights, products
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def constant(self, name: str, value: NDArray[np.generic]) -> str:
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def floats(self, name: str) -> Floats:
        value = self._weights[name]
        assert not isinstance(value, Blocks), f"{name} is packed"  # noqa: S101 - a checked file.
        return value

    def matrix(self, name: str) -> _Matrix:
        return self._weights[name]

    def add(self, op: str, output: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        node = helper.make_node(op, list(inputs), [output], output, domain=domain, **attributes)
        self.nodes.append(node)
        return output

    def fused(self, op: str, output: str, *inputs: str, **attributes: Any) -> str:
        return self.add(op, output, *inputs, domain=_FUSED, **attributes)


def build_graph(weights: Weights, model: LocalModel) -> onnx.ModelProto:
    """Inputs `input_ids` and `attention_mask`, int32 (batch, tokens), padded on the right;
    output `embeddings`, float32 (batch, 384), of unit length."""
    graph = _Graph(weights, model.products)
    packed = model.products is Products.INT4
    hidden = _packed_embeddings(graph) if packed else _embeddings(graph)
    for number in range(model.layers):
        hidden = _layer(graph, number, hidden)
    _pool(graph, hidden)
    tokens = ["batch", "tokens"]
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT32, tokens)
        for name in ("input_ids", "attention_mask")
    ]
    output = helper.make_tensor_value_info("embeddings", TensorProto.FLOAT, ["batch", DIMENSIONS])
    opset = _OPSET_OF_INT4 if packed else _OPSET
    return helper.make_model(
        helper.make_graph(graph.nodes, model.name, inputs, [output], graph.constants),
        opset_imports=[helper.make_opsetid("", opset), helper.make_opsetid(_FUSED, 1)],
        ir_version=_IR_VERSION_OF_INT4 if packed else _IR_VERSION,
    )


def _positions(graph: _Graph) -> Floats:
    """Position embeddings. All texts have one segment, whose embedding is added to them."""
    segment = graph.floats("embeddings.token_type_embeddings.weight")[0]
    positions: Floats = graph.floats("embeddings.position_embeddings.weight") + segment
    return positions


def _embeddings(graph: _Graph) -> str:
    words = graph.floats("embeddings.word_embeddings.weight")
    graph.nodes.append(
        helper.make_node(
            "EmbedLayerNormalization",
            [
                "input_ids",
                "",
                graph.constant("words", words),
                graph.constant("positions", _positions(graph)),
                "",
                *_norm(graph, "embeddings.LayerNorm"),
            ],
            ["embedded", "embedded_mask_index"],
            domain=_FUSED,
            epsilon=LAYER_NORM_EPSILON,
        )
    )
    return "embedded"


def _packed_embeddings(graph: _Graph) -> str:
    """The same from a word table of 4 bits, of which only the rows in use are unpacked."""
    table = graph.matrix("embeddings.word_embeddings.weight")
    assert isinstance(table, Blocks)  # noqa: S101 - a checked file.
    # Signed, as the operator takes zero for the zero point.
    levels = _packed((table.levels - np.uint8(_ZERO_LEVEL)) & np.uint8(15))
    graph.constants.append(
        helper.make_tensor("words", TensorProto.INT4, table.levels.shape, levels, raw=True)
    )
    scales = graph.constant("word_scales", table.scales)
    axes = {"block_size": BLOCK, "gather_axis": 0, "quantize_axis": 1}
    words = graph.fused("GatherBlockQuantized", "word_rows", "words", "input_ids", scales, **axes)
    first, second, third = (
        graph.constant(f"index{number}", np.array([number], dtype=np.int64)) for number in range(3)
    )
    shape = graph.add("Shape", "shape", "input_ids")
    length = graph.add("Slice", "length", shape, second, third)
    positions = graph.constant("positions", _positions(graph))
    positions = graph.add("Slice", "position_rows", positions, first, length, first)
    summed = graph.add("Add", "embedding_sum", words, positions)
    norm = _norm(graph, "embeddings.LayerNorm")
    return graph.add("LayerNormalization", "embedded", summed, *norm, epsilon=LAYER_NORM_EPSILON)


def _packed(levels: NDArray[np.uint8]) -> bytes:
    """Two values a byte, the first in the low half."""
    return (levels[..., 0::2] | (levels[..., 1::2] << 4)).tobytes()


def _layer(graph: _Graph, number: int, hidden: str) -> str:
    prefix, out = f"encoder.layer.{number}", f"layer{number}"
    fused = graph.products is Products.FLOAT32
    attend = _attention if fused else _attention_of_products
    attended = attend(graph, f"{prefix}.attention.self", f"{out}.attention", hidden)
    projected, bias = _product(graph, f"{prefix}.attention.output.dense", attended)
    norm = _norm(graph, f"{prefix}.attention.output.LayerNorm")
    attended = _add_and_norm(graph, f"{out}.attended", projected, hidden, norm, bias)

    wide, bias = _product(graph, f"{prefix}.intermediate.dense", attended)
    wide = graph.fused("BiasGelu", f"{out}.gelu", wide, bias)
    projected, bias = _product(graph, f"{prefix}.output.dense", wide)
    norm = _norm(graph, f"{prefix}.output.LayerNorm")
    return _add_and_norm(graph, out, projected, attended, norm, bias)


def _attention(graph: _Graph, prefix: str, output: str, hidden: str) -> str:
    matrices = [graph.floats(f"{part}.weight").T for part in _query_key_value(prefix)]
    inputs = (
        hidden,
        graph.constant(f"{prefix}.qkv", np.concatenate(matrices, axis=1)),
        _bias_of_attention(graph, prefix),
        "attention_mask",
    )
    return graph.fused("Attention", output, *inputs, num_heads=HEADS)


def _attention_of_products(graph: _Graph, prefix: str, output: str, hidden: str) -> str:
    """Attention on quantized products; the fused operator would compute them in float32."""
    parts = _query_key_value(prefix)
    matrix = _stacked([graph.matrix(f"{part}.weight") for part in parts])
    product = _times(graph, f"{prefix}.qkv", hidden, matrix)
    lengths = graph.constant(f"{prefix}.lengths", np.array([DIMENSIONS] * 3, dtype=np.int64))
    split = helper.make_node("Split", [product, lengths], parts, f"{prefix}.split", axis=2)
    graph.nodes.append(split)
    inputs = (*parts, _bias_of_attention(graph, prefix), "attention_mask")
    return graph.fused("MultiHeadAttention", output, *inputs, num_heads=HEADS)


def _query_key_value(prefix: str) -> list[str]:
    return [f"{prefix}.{part}" for part in ("query", "key", "value")]


def _bias_of_attention(graph: _Graph, prefix: str) -> str:
    biases = [graph.floats(f"{part}.bias") for part in _query_key_value(prefix)]
    return graph.constant(f"{prefix}.qkv_bias", np.concatenate(biases))


def _stacked(matrices: Sequence[_Matrix]) -> _Matrix:
    """Matrices stored for x @ W.T, one above the other."""
    blocks = [each for each in matrices if isinstance(each, Blocks)]
    if not blocks:
        return np.concatenate([each for each in matrices if not isinstance(each, Blocks)])
    return Blocks(
        np.concatenate([each.levels for each in blocks]),
        np.concatenate([each.scales for each in blocks]),
    )


def _product(graph: _Graph, name: str, value: str) -> tuple[str, str]:
    """The product, and the bias that the next, fused operator adds."""
    bias = graph.constant(f"{name}.bias", graph.floats(f"{name}.bias"))
    return _times(graph, name, value, graph.matrix(f"{name}.weight")), bias


def _times(graph: _Graph, name: str, value: str, matrix: _Matrix) -> str:
    """The name of `value @ matrix.T`."""
    if isinstance(matrix, Blocks):
        return _packed_product(graph, name, value, matrix)
    # MatMul multiplies from the right.
    if graph.products is Products.INT8:
        return quantized_product(graph, name, value, matrix.T)
    return graph.add("MatMul", f"{name}.product", value, graph.constant(f"{name}.weight", matrix.T))


def _packed_product(graph: _Graph, name: str, value: str, matrix: Blocks) -> str:
    rows, columns = matrix.levels.shape
    packed = np.frombuffer(_packed(matrix.levels), np.uint8)
    return graph.fused(
        "MatMulNBits",
        f"{name}.product",
        value,
        graph.constant(f"{name}.weight", packed.reshape(rows, -1, BLOCK // 2)),
        graph.constant(f"{name}.scales", matrix.scales),
        K=columns,
        N=rows,
        bits=4,
        block_size=BLOCK,
    )


def _norm(graph: _Graph, name: str) -> tuple[str, str]:
    return (
        graph.constant(f"{name}.weight", graph.floats(f"{name}.weight")),
        graph.constant(f"{name}.bias", graph.floats(f"{name}.bias")),
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
