"""The model of a run: replies that name the message they answer, and blank records of any form."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from bench.model_server import (
    CutOff,
    Json,
    ModelServer,
    NotJson,
    Request,
    Slow,
    Status,
    Text,
    embedding_of,
)

# By the name of the fault: what a model server does instead of answering.
FAILURES = {
    "slow": Slow(20, then="Late."),
    "lying": Json({"id": "1", "object": "chat.completion", "created": 1, "choices": []}),
    "not JSON": NotJson(),
    "cut off": CutOff(),
    "failing": Status(500),
}
# A message of a run begins so; see `bench.fire.load`.
NAMED = re.compile(r"\[fire (\S+)\]")


def recover(server: ModelServer) -> None:
    server.answer(_answer)


def fail(server: ModelServer, how: str) -> None:
    server.answer(FAILURES[how])


def reply_to(name: str) -> str:
    """What the model says to the message of that name."""
    return f"[fire reply-{name}] That is good to know."


def vectors_of(dimensions: int) -> Callable[[Request], Json]:
    """An answer to a request for embeddings of that length."""

    def answer(request: Request) -> Json:
        data = [
            {"object": "embedding", "index": place, "embedding": embedding_of(text, dimensions)}
            for place, text in enumerate(request.body["input"])
        ]
        return Json({"object": "list", "data": data, "model": "scripted"})

    return answer


def _answer(request: Request) -> Any:
    wanted = request.body.get("response_format") or {}
    if wanted.get("type") == "json_schema":
        return json.dumps(_blank(wanted["json_schema"]["schema"]))
    names = NAMED.findall(str(request.body["messages"][-1].get("content", "")))
    return Text(reply_to(names[-1]) if names else "Nothing to say.")


def _blank(schema: dict[str, Any]) -> Any:
    """The emptiest value that fits a JSON schema."""
    root = schema

    def blank(node: dict[str, Any]) -> Any:
        if "$ref" in node:
            return blank(root["$defs"][node["$ref"].rpartition("/")[2]])
        if "enum" in node:
            return node["enum"][0]
        if "anyOf" in node:
            return blank(node["anyOf"][-1])
        kind = node.get("type")
        if kind == "object":
            return {name: blank(value) for name, value in node.get("properties", {}).items()}
        return {"array": [], "string": "talk", "integer": 0, "number": 0, "boolean": False}.get(
            str(kind)
        )

    return blank(root)
