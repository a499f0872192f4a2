"""Calls of mem0's client: `mem0_calls.py URL KEY [CALLS …]` makes them, and fails with the first
answer that is wrong.

A program of its own, as each version of the library needs a process.
"""

from __future__ import annotations

import asyncio
import sys
import uuid
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

# Its library has no types.
Client = Any


class WrongAnswer(Exception):
    """The call came back, but not with what was stored."""


def check(wanted: object, answer: object) -> None:
    if answer != wanted:
        raise WrongAnswer(f"{answer!r} in place of {wanted!r}")


def said(text: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": text}]


def results(answer: Any) -> Any:
    return answer["results"] if isinstance(answer, dict) else answer


def scoped(call: Callable[..., Any], user: str, *arguments: Any) -> Any:
    return results(scoped_call(call, user, *arguments))


def scoped_call(call: Callable[..., Any], user: str, *arguments: Any) -> Any:
    """The first versions take ids as they are, later ones within filters."""
    if version("mem0ai").startswith("0."):
        return call(*arguments, user_id=user)
    return call(*arguments, filters={"user_id": user})


def stored(client: Client, user: str, place: str = "Lisbon") -> str:
    """The id of a new memory."""
    [event] = results(client.add(said(f"I just moved to {place}."), user_id=user))
    check(f"User lives in {place}", event["memory"])
    return str(event["id"])


def add(client: Client, user: str) -> None:
    stored(client, user)
    parts = [{"type": "text", "text": "I am allergic to walnuts."}]
    [event] = results(client.add([{"role": "user", "content": parts}], user_id=user))
    check("User is allergic to walnuts", event["memory"])
    verbatim = "Pier 3, beside the fish market."
    kept = results(client.add(said(verbatim), user_id=user, infer=False))
    check([verbatim], [each["memory"] for each in kept])


def find(client: Client, user: str) -> None:
    memory_id = stored(client, user)
    check(memory_id, scoped(client.search, user, "Where does she live?")[0]["id"])
    check([memory_id], [each["id"] for each in scoped(client.get_all, user)])
    check("User lives in Lisbon", client.get(memory_id)["memory"])


def change(client: Client, user: str) -> None:
    memory_id = stored(client, user)
    client.update(memory_id, text="User lives in Porto")
    check("User lives in Porto", client.get(memory_id)["memory"])
    check(["ADD", "UPDATE"], [each["event"] for each in client.history(memory_id)])
    check([], client.history(str(uuid.uuid4())))
    client.update(memory_id, metadata={"tag": "home"})
    check({"tag": "home"}, client.get(memory_id)["metadata"])


def delete(client: Client, user: str) -> None:
    client.delete(stored(client, user))
    check([], scoped(client.get_all, user))
    stored(client, user, "Graz")
    client.delete_all(user_id=user)
    check([], scoped(client.get_all, user))


def batch(client: Client, user: str) -> None:
    memory_id = stored(client, user)
    client.batch_update([{"memory_id": memory_id, "text": "User lives in Faro"}])
    check("User lives in Faro", client.get(memory_id)["memory"])
    client.batch_delete([{"memory_id": memory_id}])
    check([], scoped(client.get_all, user))


def users(client: Client, user: str) -> None:
    stored(client, user)
    check([user], [each["name"] for each in client.users()["results"] if each["name"] == user])
    client.delete_users(user_id=user)
    check([], scoped(client.get_all, user))


def awaited(client: Client, user: str) -> None:
    """`AsyncMemoryClient`, at the same address."""
    asyncio.run(_awaited(client, user))


async def _awaited(client: Client, user: str) -> None:
    from mem0 import AsyncMemoryClient  # noqa: PLC0415 - the names of the calls are read without it.

    async with AsyncMemoryClient(host=client.host, api_key=client.api_key) as waiting:
        [event] = results(await waiting.add(said("I just moved to Lisbon."), user_id=user))
        check("User lives in Lisbon", event["memory"])
        found = results(await scoped_call(waiting.search, user, "Where does she live?"))
        check(event["id"], found[0]["id"])
        check(
            [event["id"]],
            [each["id"] for each in results(await scoped_call(waiting.get_all, user))],
        )
        await waiting.delete(event["id"])
        check([], results(await scoped_call(waiting.get_all, user)))


def reset(client: Client, user: str) -> None:
    stored(client, user)
    client.reset()
    check([], client.users()["results"])


CALLS = {
    "`add`, also with `infer=False`": add,
    "`search`, `get_all`, `get`": find,
    "`update`, `history`": change,
    "`delete`, `delete_all`": delete,
    "`batch_update`, `batch_delete`": batch,
    "`users`, `delete_users`": users,
    "`AsyncMemoryClient`: `add`, `search`, `get_all`, `delete`": awaited,
    "`reset`": reset,
}


def main() -> None:
    from mem0 import MemoryClient  # noqa: PLC0415 - the names of the calls are read without it.

    url, key, *names = sys.argv[1:]
    client = MemoryClient(host=url, api_key=key)
    for name in names or CALLS:
        CALLS[name](client, f"user of {CALLS[name].__name__}")
    sys.stdout.write(version("mem0ai"))


if __name__ == "__main__":
    main()
