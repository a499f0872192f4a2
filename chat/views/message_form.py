"""What the box under a conversation sends."""

from __future__ import annotations

import uuid

from django.http import HttpResponse
from django.shortcuts import render

from chat.errors import BadText
from chat.models import Agent
from palace.models import Palace
from settings_app.pages import PageRequest

AWAY = (
    "Loci's short-term store (Redis) does not answer, so nothing was sent. "
    "Your text is still here: try again in a moment."
)


def text_of(request: PageRequest) -> str:
    """What was typed. Browsers write every line's end as two characters when they send a form."""
    return request.POST.get("text", "").replace("\r\n", "\n")


def key_of(request: PageRequest) -> uuid.UUID:
    """The id the page gave the message, so that a form sent twice says it once.

    Raises:
        BadText: it is none.
    """
    return _id_in(request, "key")


def reply_of(request: PageRequest) -> uuid.UUID:
    """The id of the reply that is to be tried again.

    Raises:
        BadText: it is none.
    """
    return _id_in(request, "reply")


def _id_in(request: PageRequest, name: str) -> uuid.UUID:
    try:
        return uuid.UUID(request.POST.get(name, ""))
    except ValueError:
        raise BadText("The form was not complete. Send it once more.") from None


def place_of(text: str) -> int | None:
    """A position in a conversation, from an address or a form; None where it is none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def agent_of(palace: Palace, text: str | None) -> Agent | None:
    """The palace's agent of that id, else its first one."""
    agents = Agent.objects.within(palace).order_by("pk")
    try:
        wanted = uuid.UUID(text or "")
    except ValueError:
        return agents.first()
    return agents.filter(uuid=wanted).first() or agents.first()


def chosen_agent(palace: Palace, request: PageRequest) -> Agent | None:
    """The one chosen in the form; None, the plain assistant, where there are no agents.

    Raises:
        BadText: it has been deleted meanwhile.
    """
    wanted = request.POST.get("agent", "")
    agent = agent_of(palace, wanted)
    if wanted and (agent is None or str(agent.uuid) != wanted):
        raise BadText("This agent is no longer here. Choose another, then send it again.")
    return agent


def refusal(request: PageRequest, error: str) -> HttpResponse:
    """For htmx: the sentence beside the box. What is being written there stays."""
    # Pages swap in what comes with 400, and with no other error.
    response = render(request, "chat/_composer.html#error", {"error": error}, status=400)
    response.headers["HX-Retarget"] = "#text-error"
    response.headers["HX-Reswap"] = "outerHTML"
    return response
