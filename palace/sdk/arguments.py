"""Validate the SDK's arguments: the scope of a call, messages, metadata, times and limits.

The scope is an account, a palace, and optionally an agent or run within it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any, Self
from uuid import UUID

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User

from language.storable import is_storable, storable_id
from language.transcripts import ROLES, Role, Turn
from palace.knowledge.facts import ExtractionOptions, Scope
from palace.knowledge.facts.filters import as_json, condition_of, quoted, read_moment
from palace.models import Drawer, DrawerQuerySet, FactQuerySet, Palace
from palace.recall import MOST_QUERY_CHARS
from palace.sdk.errors import BadInput, ScopeError, SetupError, WrongPalace
from palace.storage.indexing.fact_vectors import VectorIndex
from settings_app.accounts import find_owner

FIRST = "owner"
MOST_CHARS = 150
BY = "sdk"
Messages = str | Sequence[Mapping[str, Any]]
Moment = datetime | date | str

DEFAULT_RESULTS = 100
DEFAULT_EPISODES = 10
MOST_RESULTS = 10_000
MOST_TEXT_CHARS = 10_000
MOST_METADATA_CHARS = 100_000
MOST_PROMPT_CHARS = 100_000


def read_bound(subject: object) -> str | None:
    """The id of the only palace allowed; empty for the owner's own, None for any.

    Raises:
        ScopeError: it is blank or not text.
    """
    if subject is None or subject == "":
        return subject
    if not isinstance(subject, str) or not subject.strip():
        raise ScopeError(
            f"subject is a user_id, text that is not blank, not {quoted(subject)}; an empty one is "
            "the owner's own palace."
        )
    return storable_id(subject)


def read_index(given: object) -> VectorIndex | None:
    """
    Raises:
        BadInput: it is no vector index.
    """
    # A class has the methods, too, but nothing to call them on.
    if given is None or (isinstance(given, VectorIndex) and not isinstance(given, type)):
        return given
    raise BadInput(
        "vector_index is what open_vector_store(“qdrant”, …) returns, or an object with the "
        f"methods of VectorIndex, not {quoted(given)}."
    )


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
                raise ScopeError(f"{name} is text that is not blank, not {quoted(value)}.")
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
        """Messages added within the scope, in any palace."""
        named = {"agent": self.agent, "conversation": self.run}
        scope = {name: value for name, value in named.items() if value}
        return Drawer.objects.filter(source=BY, **scope)

    def writing(self) -> Scope:
        return Scope(BY, self.agent, self.run)


def account_of(owner: User | str | None) -> User:
    """The account with this name or e-mail address, created without a password if missing.

    Args:
        owner: None for the first superuser, on a single-user installation.

    Raises:
        BadInput: it is neither a name nor an account, or several accounts have this address.
        SetupError: the account is inactive, or None was given on a multi-user server.
    """
    found = _first() if owner is None else owner
    user = _named(found) if isinstance(found, str) else found
    if not isinstance(user, User):
        raise BadInput(f"owner is an account's name or address, not {quoted(owner)}.")
    if not user.is_active:
        raise SetupError(f"The account {user.get_username()} is closed; open it at /admin/.")
    return user


def _first() -> User:
    if not settings.USES_EMBEDDED_SERVICES:
        raise SetupError("This is a server with many accounts; name one: Memory(owner=…).")
    return find_owner() or _made(FIRST, is_staff=True, is_superuser=True)


def _named(name: str) -> User:
    if not name.strip() or len(name) > MOST_CHARS or not is_storable(name):
        raise BadInput(f"An owner is a name or an address of 1 to {MOST_CHARS} characters.")
    users = get_user_model().objects
    user = users.filter(username=name).first()
    if user is not None:
        return user
    with_address = users.filter(email__iexact=name)[:2] if "@" in name else ()
    if len(with_address) > 1:
        raise BadInput(f"More than one account has the address {name}; give its user name.")
    return with_address[0] if with_address else _made(name)


def _made(name: str, **more: bool) -> User:
    """Create the account; safe to call concurrently."""
    address = name if "@" in name else ""
    defaults = {"email": address, "password": make_password(None), **more}
    user, _ = get_user_model().objects.get_or_create(username=name, defaults=defaults)
    return user


def turns_of(messages: Messages, said_at: datetime, name: str) -> list[Turn]:
    """Convert messages to turns, verbatim; repeated messages stay separate turns.

    Args:
        name: The name of this call; the turns' ids begin with it.
        messages: A text that the user said, or a list of {"role", "content"}; a message may have
            a "name", the speaker's. Other keys are ignored.

    Raises:
        BadInput: a message is invalid; says which and why.
    """
    if isinstance(messages, str):
        messages = [{"role": "user", "content": messages}]
    if not isinstance(messages, Sequence):
        raise BadInput(
            "messages is a text, or a list of messages with role and content, not "
            f"{quoted(messages)}."
        )
    return [_turn(f"{name}/{at}", at, message, said_at) for at, message in enumerate(messages)]


def _turn(key: str, at: int, message: object, said_at: datetime) -> Turn:
    if not isinstance(message, Mapping):
        raise BadInput(f"Message {at} is {quoted(message)}; give an object with role and content.")
    text, name = message.get("content"), message.get("name") or ""
    if text is None and message.get("tool_calls"):
        # OpenAI's form of a message without words.
        text = ""
    if not isinstance(text, str) or not is_storable(text):
        raise BadInput(
            f"Message {at} has no content that can be kept; it is text without NUL and without "
            "half of a surrogate pair."
        )
    if not isinstance(name, str):
        raise BadInput(f"Message {at} has the name {quoted(name)}; a name is text.")
    return Turn(key, _role(at, message.get("role")), text, said_at, name)


def _role(at: int, role: object) -> Role:
    roles: dict[object, Role] = {name: name for name in ROLES}
    if not isinstance(role, str) or role not in roles:
        raise BadInput(
            f"Message {at} has the role {quoted(role)}; it is one of {', '.join(ROLES)}."
        )
    return roles[role]


def metadata_of(metadata: object) -> dict[str, Any]:
    """
    Raises:
        BadInput: it is not a JSON object, or too large.
    """
    if metadata is None:
        return {}
    if not isinstance(metadata, Mapping) or not all(isinstance(key, str) for key in metadata):
        raise BadInput(f"metadata is an object with text for keys, not {quoted(metadata)}.")
    try:
        written = json.dumps(dict(metadata), allow_nan=False, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise BadInput(f"metadata cannot be written as JSON: {error}.") from None
    if len(written) > MOST_METADATA_CHARS or "\\u0000" in written or not is_storable(written):
        raise BadInput(
            f"metadata has up to {MOST_METADATA_CHARS} characters as JSON, and none that cannot be "
            "stored (NUL or a lone surrogate)."
        )
    kept: dict[str, Any] = json.loads(written)
    return kept


def manner_of(
    prompt: object, judging_prompt: object, filters: Mapping[str, Any] | None
) -> ExtractionOptions:
    """
    Raises:
        BadInput: a prompt is not text; BadFilter: the filter is invalid.
    """
    if filters is not None:
        condition_of(filters)
        filters = as_json(filters)
    return ExtractionOptions(
        _prompt("prompt", prompt), _prompt("judging_prompt", judging_prompt), filters
    )


def _prompt(name: str, prompt: object) -> str:
    if prompt is None:
        return ""
    if not isinstance(prompt, str):
        raise BadInput(f"{name} is a text with instructions for a model, not {quoted(prompt)}.")
    if len(prompt) > MOST_PROMPT_CHARS or not is_storable(prompt):
        raise BadInput(
            f"{name} has up to {MOST_PROMPT_CHARS} characters, and none that cannot be stored "
            "(NUL or a lone surrogate)."
        )
    return prompt


def moment_of(name: str, moment: Moment | None) -> datetime | None:
    """Parse a time; UTC if it has no zone; a date means its midnight."""
    if moment is None:
        return None
    read = read_moment(moment)
    if read is None:
        raise BadInput(f"{name} is a time such as 2024-01-31T09:30:00+01:00, not {quoted(moment)}.")
    return read


def limit_of(limit: object) -> int:
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MOST_RESULTS:
        raise BadInput(f"limit is a number from 1 to {MOST_RESULTS}, not {quoted(limit)}.")
    return limit


def query_of(query: object) -> str:
    """
    Raises:
        BadInput: it is not text, or too long.
    """
    if not isinstance(query, str):
        raise BadInput(f"query is a question as text, not {quoted(query)}.")
    if len(query) > MOST_QUERY_CHARS:
        raise BadInput(
            f"query has up to {MOST_QUERY_CHARS:,} characters, and this one {len(query):,}. "
            "Ask for what matters in it."
        )
    return query


def statement_of(text: object) -> str:
    """Validate a memory's new text."""
    if not isinstance(text, str) or not text.strip():
        raise BadInput("A memory says something: give it a text. To remove it, delete it.")
    if len(text) > MOST_TEXT_CHARS or not is_storable(text):
        raise BadInput(
            f"A memory has up to {MOST_TEXT_CHARS} characters, and none that cannot be stored "
            "(NUL or a lone surrogate)."
        )
    return text


def key_of(memory_id: object) -> UUID | None:
    """The id as UUID, or None if it is not one."""
    try:
        return UUID(str(memory_id))
    except ValueError:
        return None
