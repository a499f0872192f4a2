"""Base classes and field types of tool requests and responses."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.json_schema import GenerateJsonSchema

from language.storable import is_storable
from palace.knowledge.facts.filters import read_moment

MOST_FOUND = 200


class ToolRequest(BaseModel):
    """A tool's arguments. Unknown names are refused, so that a typo is not silently ignored."""

    model_config = ConfigDict(extra="forbid")


class ToolResponse(BaseModel):
    """A tool's structured result."""


class PalaceRequest(ToolRequest):
    user_id: str | None = Field(
        None, description="Whose palace, if the key opens several; omitted, your own."
    )


class Schemas(GenerateJsonSchema):
    """Omit titles that repeat a field's name: a model pays for each word."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def _storable(text: str) -> str:
    if not is_storable(text):
        raise ValueError("it contains a character that cannot be stored (NUL or a lone surrogate)")
    return text


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("it is blank")
    return text


def _moment(value: Any) -> Any:
    moment = read_moment(value)
    if moment is None:
        raise ValueError("it is not a time such as 2024-01-31 or 2024-01-31T09:30:00+01:00")
    return moment


Text = Annotated[str, AfterValidator(_storable)]
SomeText = Annotated[Text, AfterValidator(_not_blank)]
Moment = Annotated[datetime, BeforeValidator(_moment)]


def sentence_of(error: ValidationError) -> str:
    """The first error as a sentence, with the argument it is in."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    at = ".".join(str(part) for part in first["loc"])
    said = first["msg"].removeprefix("Value error, ")
    return f"{at}: {said}." if at else f"{said}."
