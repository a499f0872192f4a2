"""The scope of a call: a palace, and optionally an agent or run within it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from language.storable import storable_id
from palace.knowledge.facts.filter_values import shown
from palace.knowledge.facts.scope import Scope
from palace.models import Drawer, Palace
from palace.models.facts import FactQuerySet
from palace.models.hierarchy import DrawerQuerySet
from palace.sdk.errors import ScopeError, WrongPalace

BY = "sdk"


@dataclass(frozen=True, slots=True)
class CallScope:
    """
    Attributes:
        user: Whose palace; empty for the owner's own.
        agent, run: Empty for all.
    """

    user: str = ""
    agent: str = ""
    run: str = ""

    @classmethod
    def read(
        cls,
        user_id: str | None,
        agent_id: str | None,
        run_id: str | None,
        *,
        bound_to: str | None = None,
    ) -> Self:
        """
        Args:
            bound_to: The only palace allowed, and the default; empty for the owner's own. None
                allows any.

        Raises:
            ScopeError: no id is given, or one is blank or not text.
            WrongPalace: the user_id names another palace than `bound_to`.
        """
        given: dict[str, object] = {"user_id": user_id, "agent_id": agent_id, "run_id": run_id}
        if bound_to is None and all(value is None for value in given.values()):
            raise ScopeError
        for name, value in given.items():
            if value is not None and (not isinstance(value, str) or not value.strip()):
                raise ScopeError(f"{name} is text that is not blank, not {shown(value)}.")
        scope = cls(*(storable_id(value or "") for value in (user_id, agent_id, run_id)))
        if bound_to is None:
            return scope
        if user_id is not None and scope.user != bound_to:
            raise WrongPalace
        return replace(scope, user=bound_to)

    def palace(self, owner_id: int) -> Palace | None:
        """The existing palace, or None."""
        return Palace.objects.filter(owner=owner_id, subject=self.user).first()

    def palace_made(self, owner_id: int) -> Palace:
        palace, _ = Palace.objects.get_or_create(owner_id=owner_id, subject=self.user)
        return palace

    def narrow(self, facts: FactQuerySet) -> FactQuerySet:
        return facts.within_scope(agent=self.agent, run=self.run)

    def added(self) -> DrawerQuerySet:
        """Messages added within the scope, in any palace; none if the scope names an agent.

        A message does not record the agent it was added for.
        """
        if self.agent:
            return Drawer.objects.none()
        drawers = Drawer.objects.filter(source=BY)
        return drawers.filter(conversation=self.run) if self.run else drawers

    def writing(self) -> Scope:
        return Scope(BY, self.agent, self.run)
