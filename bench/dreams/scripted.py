"""A scripted model server that knows the planted groups, and makes deliberate mistakes.

It forgets to delete half of what it merges, names numbers that nobody showed it, and knows no
preferences. So a dream with it measures all but the model.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from bench.dreams.planted import Group

UNKNOWN = 90_001


@contextmanager
def scripted_model(groups: Sequence[Group]) -> Iterator[str]:
    """Run the server during the block; yields its base URL."""

    class Handler(_Handler):
        planted = groups

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    planted: Sequence[Group] = ()

    def do_POST(self) -> None:
        payload = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = json.dumps(self._answer(payload["messages"][-1]["content"]))
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": answer},
            "finish_reason": "stop",
        }
        body = {"id": "1", "object": "chat.completion", "created": 1, "model": payload["model"]}
        content = json.dumps({**body, "choices": [choice]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _answer(self, question: str) -> Mapping[str, Any]:
        material = json.loads(question.split("<material>\n")[1].split("\n</material>")[0])
        if not isinstance(material, dict):
            return {"preferences": []}
        numbers = {one["text"]: one["id"] for one in material["memories"]}
        merged, outdated, forgotten = [], [], []
        for group in self.planted:
            if not group.texts <= numbers.keys():
                continue
            ids = [numbers[fact.text] for fact in group.facts]
            if group.kind == "duplicates":
                merged.append({"source_ids": [*ids, UNKNOWN], "text": group.facts[0].text})
                forgotten.append(ids[0])
            elif group.kind == "contradictions":
                outdated.append({"id": ids[0], "by": ids[1]})
        return {"merged": merged, "outdated": outdated, "to_delete": forgotten}

    def log_message(self, format: str, *args: Any) -> None:
        """Do not log requests."""
