"""What arguments and answers are made of."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.json_schema import GenerateJsonSchema

from palace.knowledge.facts.filter_values import read_moment
from palace.storable import is_storable

MOST_FOUND = 200


class Asked(BaseModel):
    """Arguments. A name that is not known is refused: it would be a wish that nobody hears."""

    model_config = ConfigDict(extra="forbid")


class Told(BaseModel):
    """An answer."""


class OfSomebody(Asked):
    user_id: str | None = Field(
        None, description="Whose palace, where the key opens several; left out, your own."
    )


class Schemas(GenerateJsonSchema):
    """Without titles that only say a field's name again: a model pays for each word."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def _storable(text: str) -> str:
    if not is_storable(text):
        raise ValueError("it holds a character that cannot be stored (NUL or a lone surrogate)")
    return text


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("it is blank")
    return text


def _moment(value: Any) -> Any:
    moment = read_moment(value)
    if moment is None:
        raise ValueError("it is no time such as 2024-01-31 or 2024-01-31T09:30:00+01:00")
    return moment


Text = Annotated[str, AfterValidator(_storable)]
SomeText = Annotated[Text, AfterValidator(_not_blank)]
Moment = Annotated[datetime, BeforeValidator(_moment)]


def sentence_of(error: ValidationError) -> str:
    """The first thing that was wrong, with the argument it was wrong in."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    at = ".".join(str(part) for part in first["loc"])
    said = first["msg"].removeprefix("Value error, ")
    return f"{at}: {said}." if at else f"{said}."
