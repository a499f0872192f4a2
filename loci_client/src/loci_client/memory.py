"""Memory: a server's memory, by calls that wait."""

from __future__ import annotations

from types import TracebackType
from typing import Self, TypeVar

from loci_client.calls import C_co, Call, Waits, waiting
from loci_client.episodes import EpisodeCalls
from loci_client.links import RETRIES, TIMEOUT_S, Link, way_to
from loci_client.server import ServerCalls
from loci_client.working import ConversationCalls, EntryCalls

R = TypeVar("R")


class _Linked(Waits[C_co]):
    def __init__(self, link: Link, calls: C_co) -> None:
        self._link, self._calls = link, calls

    def _send(self, call: Call[R]) -> R:
        return self._link.send(call)


class Memory(_Linked[ServerCalls]):
    """The memories that a key opens: its owner's, and theirs whom the owner serves.

    Each call but those by id says whose: `user_id` names a palace of its own, without it the
    owner's; `agent_id` and `run_id` narrow it. Safe to be used by many threads.
    """

    def __init__(
        self,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        timeout_s: float = TIMEOUT_S,
        retries: int = RETRIES,
    ) -> None:
        """
        Args:
            base_url: Of the server; else what LOCI_URL says, else http://localhost:8000.
            api_key: From the server's page /settings/keys/; else what LOCI_API_KEY says.
            timeout_s: For each try of a call, in seconds.
            retries: How often a call is sent again when the server is away, busy or has had too
                many requests. It is never done twice.

        Raises:
            SetupError: there is no key, or the address is none.
        """
        way = way_to(base_url, api_key, timeout_s=timeout_s, retries=retries)
        super().__init__(Link(way), ServerCalls())

    def working(self, namespace: str, *, user_id: str | None = None) -> WorkingMemory:
        """Working memory as a `session/<id>`, `patrol/<name>` or `subagent/<id>` has it.

        Args:
            user_id: Whose palace; without it the key's own.

        Raises:
            BadInput: it is no namespace; ScopeError: nobody can be called so.
        """
        return WorkingMemory(self._link, EntryCalls(namespace, user_id))

    def conversation(
        self, conversation_id: str, *, user_id: str | None = None
    ) -> ConversationMemory:
        """What is noted of a conversation, by whatever id; arguments and errors as `working`."""
        return ConversationMemory(self._link, ConversationCalls(conversation_id, user_id))

    def episodes(self, *, user_id: str | None = None) -> EpisodicMemory:
        """What conversations came to.

        Args:
            user_id: Whose palace; without it the key's own.

        Raises:
            ScopeError: nobody can be called so.
        """
        return EpisodicMemory(self._link, EpisodeCalls(user_id))

    def close(self) -> None:
        """Close the connections; of this memory and of what it handed out."""
        self._link.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(base_url={self._link.way.base_url!r})"

    add = waiting(ServerCalls.add)
    search = waiting(ServerCalls.search)
    get = waiting(ServerCalls.get)
    get_all = waiting(ServerCalls.get_all)
    update = waiting(ServerCalls.update)
    delete = waiting(ServerCalls.delete)
    delete_all = waiting(ServerCalls.delete_all)
    history = waiting(ServerCalls.history)
    reset = waiting(ServerCalls.reset)
    entities = waiting(ServerCalls.entities)
    relations = waiting(ServerCalls.relations)
    timeline = waiting(ServerCalls.timeline)

    add_turn = waiting(ServerCalls.add_turn)
    recall = waiting(ServerCalls.recall)
    search_messages = waiting(ServerCalls.search_messages)
    user_memories = waiting(ServerCalls.user_memories)
    delete_user = waiting(ServerCalls.delete_user)
    delete_session = waiting(ServerCalls.delete_session)
    health = waiting(ServerCalls.health)


class WorkingMemory(_Linked[EntryCalls]):
    """The entries of a palace, as one namespace writes and reads them; made by `Memory.working`."""

    set = waiting(EntryCalls.set)
    get = waiting(EntryCalls.get)
    list = waiting(EntryCalls.list)
    search = waiting(EntryCalls.search)
    delete = waiting(EntryCalls.delete)
    inventory = waiting(EntryCalls.inventory)


class ConversationMemory(_Linked[ConversationCalls]):
    """What is noted of one conversation, by field; made by `Memory.conversation`."""

    get = waiting(ConversationCalls.get)
    get_field = waiting(ConversationCalls.get_field)
    put = waiting(ConversationCalls.put)
    delete = waiting(ConversationCalls.delete)
    get_scratchpad = waiting(ConversationCalls.get_scratchpad)
    set_scratchpad = waiting(ConversationCalls.set_scratchpad)
    get_entities = waiting(ConversationCalls.get_entities)
    set_entities = waiting(ConversationCalls.set_entities)


class EpisodicMemory(_Linked[EpisodeCalls]):
    """The episodes of a palace; made by `Memory.episodes`."""

    store = waiting(EpisodeCalls.store)
    search = waiting(EpisodeCalls.search)
    of_conversation = waiting(EpisodeCalls.of_conversation)
