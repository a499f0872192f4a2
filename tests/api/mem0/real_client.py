"""Calls of mem0's client: `real_client.py URL KEY` prints what they answered, as JSON.

A program of its own, as each version of the library needs a process.
"""

from __future__ import annotations

import json
import sys
import uuid
from importlib.metadata import version

from mem0 import MemoryClient

ADA, BEA = {"user_id": "ada"}, {"user_id": "bea"}


def said(text):
    return [{"role": "user", "content": text}]


def results(answer):
    return answer["results"] if isinstance(answer, dict) else answer


def main():
    url, key = sys.argv[1:]
    client = MemoryClient(host=url, api_key=key)
    is_old = version("mem0ai").startswith("0.")

    def scoped(call, *arguments):
        """The first versions take ids as they are, later ones within filters."""
        return results(call(*arguments, **ADA) if is_old else call(*arguments, filters=ADA))

    found = {"version": version("mem0ai")}
    [event] = results(client.add(said("I just moved to Lisbon."), **ADA))
    memory_id = event["id"]
    found["added"] = event["memory"]
    parts = [{"type": "text", "text": "I am allergic to walnuts."}]
    found["from parts"] = results(client.add([{"role": "user", "content": parts}], **BEA))[0][
        "memory"
    ]
    verbatim = client.add(said("Pier 3, beside the fish market."), **ADA, infer=False)
    found["verbatim"] = [each["memory"] for each in results(verbatim)]
    found["searched"] = scoped(client.search, "Where does she live?")[0]["memory"]
    found["users"] = [each["name"] for each in client.users()["results"]]
    client.update(memory_id, text="User lives in Porto")
    found["updated"] = client.get(memory_id)["memory"]
    found["changes"] = [each["event"] for each in client.history(memory_id)]
    found["of another"] = client.history(str(uuid.uuid4()))
    client.batch_update([{"memory_id": memory_id, "text": "User lives in Faro"}])
    found["by batch"] = client.get(memory_id)["memory"]
    everything = scoped(client.get_all)
    client.batch_delete([{"memory_id": each["id"]} for each in everything])
    found["left"] = {"after batch_delete": len(scoped(client.get_all))}
    client.add(said("I just moved to Graz."), **ADA)
    client.delete_all(**ADA)
    found["left"]["after delete_all"] = len(scoped(client.get_all))
    client.delete_users(**BEA)
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
