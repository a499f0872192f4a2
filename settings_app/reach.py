"""What the database shows to a request: nothing, then the signed-in person's own rows only."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from asgiref.sync import iscoroutinefunction, sync_to_async
from django.http import HttpRequest
from django.utils.decorators import sync_and_async_middleware

from isolation import reach
from isolation.reach import NOBODY, PERSON, Reach

Application = Callable[[Any, Any, Any], Awaitable[None]]


def from_nothing(application: Application) -> Application:
    """An ASGI application whose requests begin with nothing within reach.

    The server runs one that was sent before the last one was answered in that one's context.
    """

    # The server calls what can be called without arguments, as one that makes applications.
    async def answer(scope: Any, receive: Any, send: Any) -> None:
        with reach.nobody():
            await application(scope, receive, send)

    return answer


@sync_and_async_middleware
def reach_of_the_signed_in(get_response: Callable[[HttpRequest], Any]) -> Callable[..., Any]:
    """Pages show the own palace only; an API key opens what it may by itself."""
    if iscoroutinefunction(get_response):

        async def answer(request: HttpRequest) -> Any:
            # The context is this request's alone: a body that is still sent goes on within it.
            await sync_to_async(_enter)(request)
            return await get_response(request)

        return answer

    def answer_at_once(request: HttpRequest) -> Any:
        with reach.within(reach_of(request)):
            return get_response(request)

    return answer_at_once


def _enter(request: HttpRequest) -> None:
    reach.enter(reach_of(request))


def reach_of(request: HttpRequest) -> Reach:
    owner_id = request.user.pk
    return Reach(PERSON, owner=owner_id, subject="") if owner_id else NOBODY
