"""A simulated chat model that knows only its prompt, so that its answers show what was recalled.

It calls the first tool of a request, follows a schema, and streams, in OpenAI's chat protocol.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

HOST = "127.0.0.1"
PLACE = "Lisbon"
UNKNOWN = "I do not know."


def message_for(body: dict[str, Any]) -> dict[str, Any]:
    """The reply to a request: the place, if any message names it."""
    messages = body["messages"]
    knows = PLACE in json.dumps(messages)
    place = PLACE if knows else "nowhere"
    has_answered = any(message["role"] == "tool" for message in messages)
    if body.get("tools") and not has_answered:
        function = body["tools"][0]["function"]
        names = list(function.get("parameters", {}).get("properties", ()))
        # Some libraries send the schema of the answer as a tool.
        arguments = json.dumps(dict.fromkeys(names, place))
        call = {"name": function["name"], "arguments": arguments}
        call = {"index": 0, "id": "call-1", "type": "function", "function": call}
        return {"role": "assistant", "content": None, "tool_calls": [call]}
    if (body.get("response_format") or {}).get("type") == "json_schema":
        return {"role": "assistant", "content": json.dumps({"city": place})}
    return {"role": "assistant", "content": f"You live in {PLACE}." if knows else UNKNOWN}


class _Model(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        message = message_for(body)
        reason = "tool_calls" if message.get("tool_calls") else "stop"
        head = {"id": "chatcmpl-1", "created": 1, "model": body.get("model", "")}
        if body.get("stream"):
            self._stream({**head, "object": "chat.completion.chunk"}, message, reason)
        else:
            choice = {"index": 0, "message": message, "finish_reason": reason}
            usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
            whole = {**head, "object": "chat.completion", "choices": [choice], "usage": usage}
            self._send("application/json", json.dumps(whole).encode())

    def _stream(self, head: dict[str, Any], message: dict[str, Any], reason: str) -> None:
        steps: tuple[tuple[dict[str, Any], str | None], ...] = ((message, None), ({}, reason))
        chunks = [
            {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": end}]}
            for delta, end in steps
        ]
        lines = [f"data: {event}\n\n" for event in (*map(json.dumps, chunks), "[DONE]")]
        self._send("text/event-stream", "".join(lines).encode())

    def _send(self, content_type: str, content: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *_args: object) -> None:
        """Do not log requests."""


@contextmanager
def played_model(handler: type[BaseHTTPRequestHandler] = _Model) -> Iterator[str]:
    """Run the server during the block; yields its base URL.

    Args:
        handler: Answers the requests instead, to measure other behaviour.
    """
    server = ThreadingHTTPServer((HOST, 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=[0.05])
    thread.start()
    try:
        yield f"http://{HOST}:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
