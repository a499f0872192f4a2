"""JSON schemas as OpenAI's strict mode wants them."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel


def strict_schema(schema: type[BaseModel]) -> dict[str, Any]:
    """Every property required and no others allowed; nothing beside a reference; no defaults.

    Rules: https://platform.openai.com/docs/guides/structured-outputs#supported-schemas
    """
    strict: dict[str, Any] = _strict(schema.model_json_schema())
    return strict


def _strict(node: Any) -> Any:
    if isinstance(node, list):
        return [_strict(item) for item in node]
    if not isinstance(node, dict):
        return node
    if isinstance(node.get("$ref"), str):
        return {"$ref": node["$ref"]}
    strict = {key: _strict(value) for key, value in node.items() if key != "default"}
    properties = node.get("properties")
    if isinstance(properties, dict):
        # A property may itself be called "default" or "$ref": its name is not a keyword.
        strict["properties"] = {name: _strict(value) for name, value in properties.items()}
        strict["required"] = list(properties)
        strict["additionalProperties"] = False
    return strict
