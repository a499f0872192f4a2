"""The proxy in the OpenAPI schema: what is Loci's own, and what every OpenAI client relies on.

The proxy's views are no views of the REST framework, and what they pass on is the provider's, so
these descriptions are written by hand. Fields that are not listed are passed on unchanged.
"""

from __future__ import annotations

from typing import Any

from api.openai.chat_request import MODES, MOST_MESSAGES
from api.openai.views import MOST_CHARS, MOST_TEXTS
from api.rest.openapi import EXAMPLES, OPERATION_NAMES

TAG = "OpenAI"
Json = dict[str, Any]

_STRING: Json = {"type": "string"}
_TEXT_OR_NULL: Json = {"type": ["string", "null"]}
_COUNT: Json = {"type": "integer", "minimum": 0}
_ANY_OBJECT: Json = {"type": "object", "additionalProperties": True}

_PROBLEMS = {
    "400": "The request is invalid, or needs a model and none is chosen (`model_required`).",
    "401": "The key is missing, unknown, expired or revoked.",
    "403": "The key lacks the scope, or is for another palace.",
    "404": "There is no such model, response or item for this key.",
    "405": "The method is not allowed here.",
    "409": "The palace is just being changed or deleted.",
    "410": "The palace was deleted while the request was under way.",
    "413": "The body is too large.",
    "429": "Too many requests; `Retry-After` says when to retry.",
    "502": "The model cannot be reached, or its answer cannot be read.",
    "503": "The database, Redis or a model does not respond; `Retry-After` says when to retry.",
    "507": "The quota of the palace, or the disk, is full.",
}


def _object(*required: str, **properties: Json) -> Json:
    return {
        "type": "object",
        "required": list(required),
        "properties": properties,
        "additionalProperties": True,
    }


def _list(items: Json, **more: Any) -> Json:
    return {"type": "array", "items": items, **more}


def _said(description: str, shape: Json) -> Json:
    return {**shape, "description": description}


def _ref(name: str) -> Json:
    return {"$ref": f"#/components/schemas/{name}"}


_USAGE = _object(prompt_tokens=_COUNT, completion_tokens=_COUNT, total_tokens=_COUNT)
_OPTIONS: Json = {
    "model": _said(
        "`loci` or none: the model that the key's owner has chosen; `loci-off`: the same without "
        "memory; any other name goes to the same provider.",
        _TEXT_OR_NULL,
    ),
    "stream": _said("Answer with server-sent events.", {"type": ["boolean", "null"]}),
    "user": _said("Your id of the person who asks: whose palace it is.", _TEXT_OR_NULL),
    "tools": _said("Needs a model.", _list(_ANY_OBJECT)),
    "temperature": {"type": ["number", "null"]},
}
_MESSAGE = _object(
    "role",
    role=_STRING,
    content=_said(
        "A text, or a list of parts.", {"type": ["string", "array", "null"], "items": _ANY_OBJECT}
    ),
    name=_STRING,
)
_PARAMETERS = {
    "X-Loci-User": ("Whose palace, before `user` of the body.", _STRING),
    "X-Loci-Conversation": ("The conversation's id, any text.", {"type": "string", "minLength": 1}),
    "X-Loci-Memory": (
        "`recall`: keep nothing; `remember`: recall nothing; `off`: neither.",
        {"type": "string", "enum": list(MODES), "default": "on"},
    ),
}
_ANSWERED_HEADERS = {
    "X-Loci-Memory": "What was really done.",
    "X-Loci-Conversation": "The id of the conversation.",
    "X-Loci-Recollection": "The recall's id, where something was looked for.",
}

COMPONENTS: dict[str, Json] = {
    "OpenAIError": _object(
        "error",
        error=_object(
            "message",
            message=_STRING,
            type=_STRING,
            code={"type": ["string", "integer", "null"]},
            param=_TEXT_OR_NULL,
        ),
    ),
    "ChatCompletionRequest": _object(
        "messages",
        messages=_list(_MESSAGE, minItems=1, maxItems=MOST_MESSAGES),
        response_format=_said(
            "A JSON schema needs a model.", {"type": ["object", "null"], "properties": {}}
        ),
        **_OPTIONS,
    ),
    "ChatCompletion": _object(
        "choices",
        id=_STRING,
        object=_STRING,
        created=_COUNT,
        model=_STRING,
        choices=_list(
            _object(
                "message",
                index=_COUNT,
                message=_object("role", role=_STRING, content=_TEXT_OR_NULL),
                finish_reason=_TEXT_OR_NULL,
            )
        ),
        usage=_USAGE,
    ),
    "ResponseRequest": _object(
        "input",
        input=_said("A text, or a list of items.", {"type": ["string", "array"], "minItems": 1}),
        instructions=_TEXT_OR_NULL,
        previous_response_id=_said("Continues a response of the same person.", _TEXT_OR_NULL),
        store=_said("`false`: it cannot be continued by its id.", {"type": ["boolean", "null"]}),
        **_OPTIONS,
    ),
    "Response": _object(
        "id",
        "object",
        "status",
        "output",
        id=_STRING,
        object={"type": "string", "enum": ["response"]},
        created_at=_COUNT,
        status={"type": "string", "enum": ["completed", "incomplete", "failed", "in_progress"]},
        model=_STRING,
        output=_list(_ANY_OBJECT),
        usage={"type": ["object", "null"]},
    ),
    "EmbeddingRequest": _object(
        "input",
        input=_said(
            f"A text, or up to {MOST_TEXTS} of them, each with up to {MOST_CHARS} characters.",
            {"type": ["string", "array"], "items": _STRING, "minItems": 1, "maxItems": MOST_TEXTS},
        ),
        model=_said("`loci`, or the embedding model's name.", _TEXT_OR_NULL),
        encoding_format={"type": ["string", "null"], "enum": ["float", "base64", None]},
        dimensions=_said("None but the model's own.", {"type": ["integer", "null"]}),
    ),
    "EmbeddingList": _object(
        "data",
        "model",
        object=_STRING,
        model=_STRING,
        data=_list(
            _object(
                "index",
                "embedding",
                index=_COUNT,
                embedding={"type": ["array", "string"], "items": {"type": "number"}},
            )
        ),
        usage=_object(prompt_tokens=_COUNT, total_tokens=_COUNT),
    ),
    "Model": _object("id", id=_STRING, object=_STRING, created=_COUNT, owned_by=_STRING),
    "ModelList": _object("data", object=_STRING, data=_list(_ref("Model"))),
}


def _operation(label: str, said: str, answer: str, sent: str = "", *, talks: bool = False) -> Json:
    """
    Args:
        label: Method and path, as in `OPERATION_NAMES`.
        said: A title and, after an empty line, the rest.
        answer: The component of the answer; `sent` that of the body, if there is one.
        talks: A conversation: it takes and answers headers, and may be streamed.
    """
    name = OPERATION_NAMES[label]
    content: Json = {"application/json": {"schema": _ref(answer)}}
    if talks:
        content["text/event-stream"] = {"schema": _STRING}
    answered: Json = {"description": "", "content": content}
    if talks:
        answered["headers"] = {
            header: {"description": why, "schema": _STRING}
            for header, why in _ANSWERED_HEADERS.items()
        }
    operation: Json = {
        "operationId": name,
        "description": said,
        "tags": [TAG],
        "security": [{"key": []}],
        "parameters": _headers() if talks else [],
        "responses": {
            "200": answered,
            **{status: _problem(why) for status, why in _PROBLEMS.items()},
        },
    }
    if sent:
        media = {
            "schema": _ref(sent),
            "examples": {"ARequest": {"value": EXAMPLES[name], "summary": "A request"}},
        }
        operation["requestBody"] = {"required": True, "content": {"application/json": media}}
    return operation


def _headers() -> list[Json]:
    return [
        {"in": "header", "name": name, "description": why, "schema": shape}
        for name, (why, shape) in _PARAMETERS.items()
    ]


def _problem(why: str) -> Json:
    return {
        "description": why,
        "content": {"application/json": {"schema": _ref("OpenAIError")}},
    }


def _paths() -> dict[str, Json]:
    named = {"in": "path", "name": "name", "required": True, "schema": {**_STRING, "minLength": 1}}
    model = _operation("GET /v1/models/{name}", "One of the models.", "Model")
    return {
        "/v1/chat/completions": {
            "post": _operation(
                "POST /v1/chat/completions",
                "Chat with memory.\n\nFiles the person's message, recalls for it, and passes the "
                "request on to the model that the key's owner has chosen. Without a model the "
                "reply quotes the palace. Fields that are not listed are passed on unchanged.",
                "ChatCompletion",
                "ChatCompletionRequest",
                talks=True,
            )
        },
        "/v1/responses": {
            "post": _operation(
                "POST /v1/responses",
                "Chat with memory, in OpenAI's newer format.\n\nTranslated to the chat format for "
                "the model, and back.",
                "Response",
                "ResponseRequest",
                talks=True,
            )
        },
        "/v1/embeddings": {
            "post": _operation(
                "POST /v1/embeddings",
                "Vectors of the model that embeds memories.\n\nNothing is kept of the texts.",
                "EmbeddingList",
                "EmbeddingRequest",
            )
        },
        "/v1/models": {
            "get": _operation(
                "GET /v1/models",
                "The models.\n\n`loci`, `loci-off`, and the provider's own list.",
                "ModelList",
            )
        },
        "/v1/models/{name}": {"get": {**model, "parameters": [named]}},
    }


def with_proxy(result: Json, **_more: Any) -> Json:
    """For SPECTACULAR_SETTINGS: add the proxy's addresses."""
    result["paths"] |= _paths()
    result["components"]["schemas"] |= COMPONENTS
    return result
