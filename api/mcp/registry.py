"""Tools: functions of a caller and of arguments, described by their types and docstrings."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, get_type_hints

from mcp import types

from api.mcp.callers import Caller
from api.mcp.fields import Asked, Schemas, Told

Scope = Literal["read", "write"]
AskedT = TypeVar("AskedT", bound=Asked)
ToldT = TypeVar("ToldT", bound=Told)


@dataclass(frozen=True, slots=True)
class Tool:
    """
    Attributes:
        scope: What a key needs for it; `read` changes nothing.
        run: Waits, and asks the database: not in coroutines.
    """

    title: str
    scope: Scope
    asked: type[Asked]
    run: Callable[[Caller, Any], Told]
    shown: types.Tool

    @property
    def name(self) -> str:
        return self.shown.name


TOOLS: dict[str, Tool] = {}


def tool(
    title: str, scope: Scope, *, destroys: bool = False, again_is_same: bool = False
) -> Callable[[Callable[[Caller, AskedT], ToldT]], Callable[[Caller, AskedT], ToldT]]:
    """A tool called as the function is; its docstring is what models are told.

    Args:
        destroys: Whether what there was is gone, or held no longer, afterwards.
        again_is_same: Whether a second call with the same arguments changes nothing more.
    """

    def listed(run: Callable[[Caller, AskedT], ToldT]) -> Callable[[Caller, AskedT], ToldT]:
        hints = get_type_hints(run)
        asked, told = hints["asked"], hints["return"]
        shown = types.Tool(
            name=run.__name__,
            title=title,
            description=inspect.cleandoc(run.__doc__ or ""),
            input_schema=asked.model_json_schema(schema_generator=Schemas),
            output_schema=told.model_json_schema(schema_generator=Schemas, mode="serialization"),
            annotations=types.ToolAnnotations(
                title=title,
                read_only_hint=scope == "read",
                destructive_hint=destroys,
                idempotent_hint=scope == "read" or again_is_same,
                open_world_hint=False,
            ),
        )
        TOOLS[shown.name] = Tool(title, scope, asked, run, shown)
        return run

    return listed
