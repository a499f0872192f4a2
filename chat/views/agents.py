"""The pages of agents: their names, instructions, and use of memories; the one a form names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.db import IntegrityError, transaction
from django.db.models import Count, OuterRef, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render

from chat.models import Agent, Conversation, one_line
from chat.replies import BadText
from palace.models import Palace
from settings_app.pages import PageRequest, refuse_stale, signed_in_form, stored_values

LONGEST_INSTRUCTIONS = 20_000


if TYPE_CHECKING:
    BaseForm = forms.ModelForm[Agent]
else:
    BaseForm = forms.ModelForm


class LinesField(forms.CharField):
    """A text as it was typed: forms send each line break as two characters."""

    def to_python(self, value: Any) -> str:
        return str(super().to_python(value)).replace("\r\n", "\n")


class AgentForm(BaseForm):
    # The user's own words: white space at their ends stays.
    instructions = LinesField(
        widget=forms.Textarea(attrs={"rows": 8}),
        required=False,
        strip=False,
        max_length=LONGEST_INSTRUCTIONS,
    )

    class Meta:
        model = Agent
        fields = ["name", "instructions", "model", "recalls"]

    def clean_name(self) -> str:
        name = one_line(self.cleaned_data["name"])
        if not name:
            raise forms.ValidationError("Give it a name of at least one letter.")
        others = Agent.objects.filter(palace=self.instance.palace_id).exclude(pk=self.instance.pk)
        if others.filter(name__iexact=name).exists():
            raise forms.ValidationError(f"You have an agent called {name} already.")
        return name


@signed_in_form
def agents(request: PageRequest) -> HttpResponse:
    """The list, and a form for a new one."""
    palace = Palace.objects.own(request.user)
    form = AgentForm(request.POST or None, instance=Agent(palace=palace))
    if request.method == "POST" and _saved(form):
        messages.success(request, f"{form.instance.name} is here.")
        return redirect("agents")
    held = Conversation.objects.filter(palace=palace, agent=OuterRef("pk")).order_by()
    talks = held.values("agent").annotate(n=Count("pk")).values("n")
    listed = Agent.objects.within(palace).annotate(talks=Coalesce(Subquery(talks), 0))
    context = {"agents": listed.order_by("pk"), "form": form}
    return _render(request, "chat/agents.html", form, context)


@signed_in_form
def agent_detail(request: PageRequest, uuid: UUID) -> HttpResponse:
    agent = _the_agent(request, uuid)
    stored = stored_values(AgentForm(instance=agent))
    form = AgentForm(request.POST or None, instance=agent)
    if request.method == "POST":
        refuse_stale(request, form, stored)
    if request.method == "POST" and _saved(form):
        messages.success(request, "Saved.")
        return redirect(agent)
    # The form writes what was typed into its instance; the page keeps the name that is stored.
    context = {"agent": _the_agent(request, uuid), "form": form, "stored": stored}
    return _render(request, "chat/agent_detail.html", form, context)


@signed_in_form
def delete_agent(request: PageRequest, uuid: UUID) -> HttpResponse:
    """Delete an agent; its conversations stay, and go on with the plain assistant."""
    agent = _the_agent(request, uuid)
    if request.method != "POST":
        talks = agent.conversations.count()
        return render(request, "chat/delete_agent.html", {"agent": agent, "talks": talks})
    name = agent.name
    agent.delete()
    messages.success(request, f"{name} is deleted.")
    return redirect("agents")


def _saved(form: AgentForm) -> bool:
    if not form.is_valid():
        return False
    try:
        with transaction.atomic():
            form.save()
    except IntegrityError:
        # Another tab has just taken the name.
        form.add_error("name", "You have an agent of this name already.")
        return False
    return True


def _render(
    request: PageRequest, template: str, form: AgentForm, context: dict[str, Any]
) -> HttpResponse:
    status = 400 if form.is_bound and form.errors else 200
    return render(request, template, context, status=status)


def _the_agent(request: PageRequest, uuid: UUID) -> Agent:
    palace = Palace.objects.own(request.user)
    return get_object_or_404(Agent.objects.within(palace), uuid=uuid)


def agent_of(palace: Palace, text: str | None) -> Agent | None:
    """The palace's agent of that id; None, the plain assistant, if there is none."""
    try:
        wanted = UUID(text or "")
    except ValueError:
        return None
    return Agent.objects.within(palace).filter(uuid=wanted).first()


def chosen_agent(palace: Palace, request: PageRequest) -> Agent | None:
    """The one chosen in the form; None, the plain assistant, by default.

    Raises:
        BadText: it has been deleted meanwhile.
    """
    wanted = request.POST.get("agent", "")
    agent = agent_of(palace, wanted)
    if wanted and agent is None:
        raise BadText("This agent is no longer here. Choose another, then send it again.")
    return agent
