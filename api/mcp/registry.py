"""The tool registry: functions of a caller and a request, described by types and docstrings."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, get_type_hints

from mcp import types

from api.mcp.callers import Caller
from api.mcp.fields import Schemas, ToolRequest, ToolResponse

Scope = Literal["read", "write"]
RequestT = TypeVar("RequestT", bound=ToolRequest)
ResponseT = TypeVar("ResponseT", bound=ToolResponse)


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
