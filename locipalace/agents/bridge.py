"""`locipalace mcp`: MCP on standard input and output, relayed to a running Loci.

The server keeps no state between requests, so each message is one HTTP request. Assistants ask only
at their start for tools, prompts and the protocol. If Loci does not run yet, they get the last
answers from a file, so that the tools work once Loci runs.
"""

from __future__ import annotations

import base64
import json
import os
import re
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from locipalace import installation
from locipalace.agents import connection
from locipalace.agents.connection import Answer, CannotReach, NotRunning

PATH = "/mcp"
# Some tools mine, which takes up to a minute.
TIMEOUT_S = 70.0
PARSE_ERROR, INVALID_REQUEST, SERVER_ERROR = -32700, -32600, -32000
# From the revision 2026-07-28 on, each request names its version.
VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
# The argument that a request repeats in a header from then on.
NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_PLAIN = re.compile(r"[!-~](?:[ -~]*[!-~])?")

Message = Mapping[str, Any]
ASKED_ONCE = {
    "initialize",
    "server/discover",
    "tools/list",
    "resources/list",
    "resources/templates/list",
    "prompts/list",
}


def serve(incoming: IO[bytes], outgoing: IO[bytes]) -> None:
    """Relay until `incoming` ends; requests in progress are answered."""
    bridge = _Bridge(outgoing)
    for line in incoming:
        if line.strip():
            threading.Thread(target=bridge.relay, args=(line,)).start()


class _Bridge:
    def __init__(self, outgoing: IO[bytes]) -> None:
        self._outgoing = outgoing
        self._writing = threading.Lock()
        # Agreed on by `initialize`; later revisions have no such request.
        self._version = ""

    def relay(self, line: bytes) -> None:
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            self._send(_failure(None, PARSE_ERROR, "This line is not JSON."))
            return
        if not isinstance(message, dict):
            self._send(_failure(None, INVALID_REQUEST, "Send one message a line."))
        # A stateless server ignores notifications; it has sent no requests that could be answered.
        elif "id" in message and "method" in message:
            is_request = isinstance(message["method"], str)
            wrong = _failure(message["id"], INVALID_REQUEST, "The method is not a string.")
            self._send(self._answer(message, line) if is_request else wrong)

    def _answer(self, request: Message, line: bytes) -> Message:
        version = _version_of(request) or self._version
        try:
            headers = _headers(request, self._version)
            answer = connection.find().post(PATH, line, timeout_s=TIMEOUT_S, headers=headers)
        except NotRunning as error:
            result = last(request, version)
            if result is None:
                return _failure(request["id"], SERVER_ERROR, str(error))
            self._agree(request, result)
            return {"jsonrpc": "2.0", "id": request["id"], "result": result}
        except CannotReach as error:
            return _failure(request["id"], SERVER_ERROR, str(error))
        response = _response(answer)
        if response is None:
            return _failure(request["id"], SERVER_ERROR, answer.problem(), answer.json())
        if "result" in response:
            self._agree(request, response["result"])
            keep(request, version, response["result"])
        return response

    def _agree(self, request: Message, result: Any) -> None:
        if request["method"] == "initialize" and isinstance(result, dict):
            self._version = str(result.get("protocolVersion", ""))

    def _send(self, message: Message) -> None:
        line = json.dumps(message, separators=(",", ":")).encode() + b"\n"
        # The assistant has gone, so nobody reads the answer.
        with self._writing, suppress(BrokenPipeError):
            self._outgoing.write(line)
            self._outgoing.flush()


def _version_of(request: Message) -> str:
    """The protocol revision in the request, or empty."""
    params = _params(request)
    meta = params.get("_meta")
    named = meta.get(VERSION_KEY) if isinstance(meta, dict) else None
    version = named or params.get("protocolVersion")
    return version if isinstance(version, str) else ""


def _headers(request: Message, agreed: str) -> dict[str, str]:
    headers = {"Accept": "application/json, text/event-stream"}
    method, params = str(request["method"]), _params(request)
    if method == "initialize" or not (version := _version_of(request)):
        return headers | ({"MCP-Protocol-Version": agreed} if agreed else {})
    headers |= {"MCP-Protocol-Version": _encoded(version), "Mcp-Method": _encoded(method)}
    name = params.get(NAMED_BY.get(method, ""))
    return headers | ({"Mcp-Name": _encoded(name)} if isinstance(name, str) else {})


def _params(request: Message) -> Message:
    params = request.get("params")
    return params if isinstance(params, dict) else {}


def _encoded(text: str) -> str:
    """MCP's encoding of values that a header cannot hold."""
    if _PLAIN.fullmatch(text) and not text.startswith("=?base64?"):
        return text
    return f"=?base64?{base64.b64encode(text.encode(errors='replace')).decode()}?="


def _response(answer: Answer) -> Message | None:
    """The JSON-RPC response; None if the server refused the HTTP request itself."""
    body = answer.json()
    return body if isinstance(body, dict) and "jsonrpc" in body else None


def _failure(key: Any, code: int, sentence: str, problem: Any = None) -> Message:
    error = {"code": code, "message": sentence}
    if problem is not None:
        error["data"] = problem
    return {"jsonrpc": "2.0", "id": key, "error": error}


def keep(request: Mapping[str, Any], version: str, result: Any) -> None:
    """
    Args:
        version: The answer's revision of MCP, or the requested one.
    """
    if request["method"] not in ASKED_ONCE:
        return
    kept = _read()
    if kept.get(_name(request, version)) != result:
        _write({**kept, _name(request, version): result})


def last(request: Mapping[str, Any], version: str) -> Any:
    """The last result of this request; None if there is none, or not one of `ASKED_ONCE`."""
    return _read().get(_name(request, version)) if request["method"] in ASKED_ONCE else None


def _name(request: Mapping[str, Any], version: str) -> str:
    return f"{request['method']} {version}"


def _path() -> Path:
    return installation.home() / "mcp-answers.json"


def _read() -> dict[str, Any]:
    # The file only saves a restart of the assistant: without it all else works.
    with suppress(OSError, ValueError):
        kept = json.loads(_path().read_text(encoding="utf-8"))
        return kept if isinstance(kept, dict) else {}
    return {}


def _write(answers: dict[str, Any]) -> None:
    aside = _path().with_name(f".{_path().name}.{os.getpid()}")
    with suppress(OSError):
        aside.write_text(json.dumps(answers), encoding="utf-8")
        aside.replace(_path())
