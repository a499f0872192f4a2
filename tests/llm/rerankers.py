"""Cross-encoders small enough to know their answers: real ONNX files, a real tokenizer."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from llm.embedding.local_models import LOCAL_MODELS, MODEL_NAME

# BERT's marks, letters and signs come before the words.
FIRST_WORD = 1996


def make_folder(folder, cross_encoder):
    model = LOCAL_MODELS[MODEL_NAME]
    folder.mkdir(parents=True, exist_ok=True)
    content = (model.installed_folder() / model.tokenizer).read_bytes()
    (folder / "tokenizer.json").write_bytes(content)
    (folder / "model.onnx").write_bytes(cross_encoder.SerializeToString())
    return folder


def overlap(*, columns=1, type_=TensorProto.INT64, output="logits"):
    """How many pairs of words, one of the question's and one of the passage's, are the same.

    With two columns the first says the contrary, as "does not fit" would.
    """
    one, two, row, column = _axes("one", 1), _axes("two", 2), _axes("row", 1), _axes("column", 2)
    number = numpy_helper.from_array(np.array(FIRST_WORD - 1, dtype=np.int64), "last_sign")
    nodes = [
        *(
            helper.make_node("Cast", [name], [short], to=TensorProto.INT64)
            for name, short in (
                ("input_ids", "ids"),
                ("attention_mask", "mask"),
                ("token_type_ids", "types"),
            )
        ),
        helper.make_node("Greater", ["ids", "last_sign"], ["is_word"]),
        helper.make_node("Cast", ["is_word"], ["word"], to=TensorProto.INT64),
        helper.make_node("Mul", ["word", "mask"], ["words"]),
        helper.make_node("Mul", ["words", "types"], ["theirs"]),
        helper.make_node("Sub", ["words", "theirs"], ["ours"]),
        helper.make_node("Cast", ["theirs"], ["passage"], to=TensorProto.FLOAT),
        helper.make_node("Cast", ["ours"], ["question"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["ids", "row"], ["across"]),
        helper.make_node("Unsqueeze", ["ids", "column"], ["down"]),
        helper.make_node("Equal", ["across", "down"], ["is_same"]),
        helper.make_node("Cast", ["is_same"], ["same"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["passage", "two"], ["passages"]),
        helper.make_node("MatMul", ["same", "passages"], ["shared_by"]),
        helper.make_node("Unsqueeze", ["question", "one"], ["questions"]),
        helper.make_node("MatMul", ["questions", "shared_by"], ["shared"]),
        helper.make_node("Squeeze", ["shared", "two"], ["fits"]),
        helper.make_node("Neg", ["fits"], ["fits_not"]),
        helper.make_node("Concat", (["fits_not", "fits"])[-columns:], [output], axis=1),
    ]
    inputs = _inputs(("input_ids", "attention_mask", "token_type_ids"), type_)
    return _model(nodes, inputs, output, [number, one, two, row, column])


def length():
    """How many tokens there are: a model that does not know which are whose."""
    nodes = [
        helper.make_node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
        helper.make_node("ReduceSum", ["mask", "one"], ["logits"], keepdims=1),
    ]
    inputs = _inputs(("input_ids", "attention_mask"), TensorProto.INT64)
    return _model(nodes, inputs, "logits", [_axes("one", 1)])


def embedder():
    """No cross-encoder: a number for every token."""
    nodes = [helper.make_node("Cast", ["input_ids"], ["logits"], to=TensorProto.FLOAT)]
    inputs = _inputs(("input_ids", "attention_mask"), TensorProto.INT64)
    return _model(nodes, inputs, "logits", [])


def without_numbers():
    """The square root of less than nothing."""
    nodes = [
        helper.make_node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
        helper.make_node("ReduceSum", ["mask", "one"], ["length"], keepdims=1),
        helper.make_node("Neg", ["length"], ["below"]),
        helper.make_node("Sqrt", ["below"], ["logits"]),
    ]
    inputs = _inputs(("input_ids", "attention_mask"), TensorProto.INT64)
    return _model(nodes, inputs, "logits", [_axes("one", 1)])


def of_pictures():
    nodes = [helper.make_node("Identity", ["pixel_values"], ["logits"])]
    return _model(nodes, _inputs(("pixel_values",), TensorProto.FLOAT), "logits", [])


def short_sighted(most=100):
    """It has a position for so many tokens, and breaks off at a longer text."""
    positions = numpy_helper.from_array(np.ones((most, 1), dtype=np.float32), "positions")
    nodes = [
        helper.make_node("CumSum", ["attention_mask", "axis"], ["counted"]),
        helper.make_node("Gather", ["positions", "counted"], ["found"]),
        helper.make_node("ReduceSum", ["found", "one"], ["logits"], keepdims=0),
    ]
    axis = numpy_helper.from_array(np.array(1, dtype=np.int64), "axis")
    inputs = _inputs(("input_ids", "attention_mask"), TensorProto.INT64)
    return _model(nodes, inputs, "logits", [positions, axis, _axes("one", 1)])


def slow(steps=2000, size=700):
    """The same as `length`, after many products that change nothing."""
    identity = numpy_helper.from_array(np.eye(size, dtype=np.float32), "identity")
    base = length()
    first = helper.make_node("Mul", ["identity", "lengths"], ["step0"])
    nodes = [
        *base.graph.node[:1],
        helper.make_node("ReduceSum", ["mask", "one"], ["each"], keepdims=1),
        helper.make_node("ReduceMax", ["each"], ["lengths"], keepdims=0),
        first,
        *(
            helper.make_node("MatMul", [f"step{n}", "identity"], [f"step{n + 1}"])
            for n in range(steps)
        ),
        helper.make_node("ReduceMax", [f"step{steps}"], ["most"], keepdims=0),
        helper.make_node("Mul", ["each", "most"], ["logits"]),
    ]
    return _model(nodes, list(base.graph.input), "logits", [identity, _axes("one", 1)])


def _axes(name, axis):
    return numpy_helper.from_array(np.array([axis], dtype=np.int64), name)


def _inputs(names, type_):
    return [helper.make_tensor_value_info(name, type_, ["pairs", "tokens"]) for name in names]


def _model(nodes, inputs, output, constants):
    shape = ["pairs", "columns"]
    outputs = [helper.make_tensor_value_info(output, TensorProto.FLOAT, shape)]
    graph = helper.make_graph(nodes, "reranker", inputs, outputs, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return model
