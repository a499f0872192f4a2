"""The registry of tools: how a tool is declared, its fields' base classes, and who calls it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from functools import wraps
from typing import Annotated, Any, Concatenate, Literal, ParamSpec, TypeVar, get_type_hints

from django.contrib.auth.models import User
from mcp import types
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.json_schema import GenerateJsonSchema

from api.rest import access
from api.rest.access import check_rate, check_scope
from isolation import row_access
from language.storable import is_storable
from palace.knowledge.facts.filters import read_moment
from palace.models import Palace
from palace.recall import MOST_HITS, MOST_QUERY_CHARS
from settings_app import throttling
from settings_app.api_keys import ApiKey, add_audit_line
from settings_app.throttling import cost_of

Scope = Literal["read", "write"]
MOST_FOUND = MOST_HITS
# Pydantic's name for an argument that the schema does not have.
UNKNOWN = "extra_forbidden"
P = ParamSpec("P")
R = TypeVar("R")


class ToolRequest(BaseModel):
    """A tool's arguments. Unknown names are refused, so that a typo is not silently ignored."""

    model_config = ConfigDict(extra="forbid")

    def cost(self) -> int:
        """How many requests the call counts for."""
        return cost_of(results=getattr(self, "limit", 1))


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


STORABLE = AfterValidator(_storable)
Text = Annotated[str, STORABLE]
SomeText = Annotated[Text, AfterValidator(_not_blank)]
# A length stands before the validators: behind them pydantic would count "items".
Words = Annotated[str, Field(max_length=MOST_QUERY_CHARS), STORABLE]
# A question to search for.
Question = Annotated[Words, AfterValidator(_not_blank)]
Moment = Annotated[datetime, BeforeValidator(_moment)]


def sentence_of(error: ValidationError) -> str:
    """The first error as a sentence, with the argument it is in; before all a misspelt name."""
    errors = error.errors(include_url=False, include_context=False, include_input=False)
    first = next((each for each in errors if each["type"] == UNKNOWN), errors[0])
    at = ".".join(str(part) for part in first["loc"])
    said = first["msg"].removeprefix("Value error, ")
    if first["type"] == UNKNOWN:
        said = "there is no such argument; the tool's schema has those there are"
    return f"{at}: {said}." if at else f"{said}."


@dataclass(frozen=True, slots=True)
class Tool:
    """
    Attributes:
        scope: The scope a key needs; `read` changes nothing.
        run: Blocks and queries the database; do not call it in a coroutine.
    """

    title: str
    scope: Scope
    request: type[ToolRequest]
    run: Callable[[Caller, Any], ToolResponse]
    shown: types.Tool

    @property
    def name(self) -> str:
        return self.shown.name


RequestT = TypeVar("RequestT", bound=ToolRequest)
ResponseT = TypeVar("ResponseT", bound=ToolResponse)
TOOLS: dict[str, Tool] = {}


def tool(
    title: str, scope: Scope, *, destroys: bool = False, again_is_same: bool = False
) -> Callable[[Callable[[Caller, RequestT], ResponseT]], Callable[[Caller, RequestT], ResponseT]]:
    """Register a tool under the function's name; models read its docstring.

    Args:
        destroys: Whether it deletes or overwrites something.
        again_is_same: Whether it is idempotent: repeating the call changes nothing more.
    """

    def register(
        run: Callable[[Caller, RequestT], ResponseT],
    ) -> Callable[[Caller, RequestT], ResponseT]:
        hints = get_type_hints(run)
        request, response = hints["request"], hints["return"]
        shown = types.Tool(
            name=run.__name__,
            title=title,
            description=inspect.cleandoc(run.__doc__ or ""),
            input_schema=request.model_json_schema(schema_generator=Schemas),
            output_schema=response.model_json_schema(
                schema_generator=Schemas, mode="serialization"
            ),
            annotations=types.ToolAnnotations(
                title=title,
                read_only_hint=scope == "read",
                destructive_hint=destroys,
                idempotent_hint=scope == "read" or again_is_same,
                open_world_hint=False,
            ),
        )
        TOOLS[shown.name] = Tool(title, scope, request, run, shown)
        return run

    return register


@dataclass(frozen=True, slots=True)
class Caller:
    """A caller with an API key. Over stdio, the owner gets an unsaved key with all scopes."""

    key: ApiKey

    @classmethod
    def at_home(cls, owner: User, user_id: str | None) -> Caller:
        """The caller of a local command, who may do all that the owner may.

        Args:
            user_id: Limit the caller to this palace; None allows all of the owner's.
        """
        everything = list(ApiKey.Scope.values)
        return cls(ApiKey(owner=owner, name="stdio", scopes=everything, subject=user_id))

    @property
    def is_at_home(self) -> bool:
        """Whether the call came over stdio."""
        return self.key.pk is None

    def has_access(self) -> AbstractContextManager[None]:
        """Inside the block the database shows what the key opens."""
        return row_access.use(self.key.row_access())

    def palace(self, user_id: str | None) -> Palace | None:
        """The existing palace, or None if that person has none yet.

        Raises:
            Problem: 400 or 403, as `palaces.subject_for`.
        """
        return access.palace_of(self.key, user_id)

    def palace_made(self, user_id: str | None) -> Palace:
        return access.palace_made(self.key, user_id)

    def palaces(self) -> list[Palace]:
        return access.palaces_of(self.key)

    def check(self, scope: str) -> None:
        """
        Raises:
            Problem: 403, the key lacks this scope.
        """
        check_scope(self.key, scope)

    def count(self, cost: int) -> None:
        """Count a call that asks for much; the request itself is counted at the door.

        Raises:
            Problem: 429, the key's rate limit is exceeded.
        """
        if cost > 1 and not self.is_at_home:
            check_rate(throttling.count_request(self.key, cost - 1))

    def note(self, tool: str, status: int) -> None:
        """Write an audit line, unless the call came over stdio."""
        if not self.is_at_home:
            add_audit_line(self.key, door="mcp", action="call", path=tool, status=status)


def has_access(
    function: Callable[Concatenate[Caller, P], R],
) -> Callable[Concatenate[Caller, P], R]:
    """A function of a caller: while it runs the database shows what the key opens."""

    @wraps(function)
    def opened(caller: Caller, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with caller.has_access():
            return function(caller, *args, **kwargs)

    return opened
