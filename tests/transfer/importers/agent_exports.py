"""Builders of small sessions, shaped as coding agents write them."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

SESSION = "0b7e3f2a-1111-4222-8333-444455556666"


def claude_code(kind, content, *, uuid="u1", at="2025-06-01T10:00:00.000Z", **more):
    """A record of Claude Code with a message."""
    return {
        "parentUuid": None,
        "isSidechain": False,
        "userType": "external",
        "cwd": "/home/ana/ferry-times",
        "sessionId": SESSION,
        "version": "2.0.1",
        "gitBranch": "main",
        "type": kind,
        "message": {"role": kind, "content": content},
        "uuid": uuid,
        "timestamp": at,
        **more,
    }


def claude_code_tool(name, uuid="a1", **arguments):
    block = {"type": "tool_use", "id": "t1", "name": name, "input": arguments}
    return claude_code("assistant", [block], uuid=uuid)


def claude_code_result(result, uuid="r1"):
    block = {"type": "tool_result", "tool_use_id": "t1", "content": "Done."}
    return claude_code("user", [block], uuid=uuid, toolUseResult=result)


def codex(kind, payload, *, at="2025-06-01T10:00:00.000Z"):
    """A line of a rollout."""
    return {"timestamp": at, "type": kind, "payload": payload}


def codex_meta(**more):
    cwd = "/home/ana/ferry-times"
    return codex("session_meta", {"id": SESSION, "cwd": cwd, "originator": "codex_cli_rs", **more})


def codex_message(role, text, **more):
    kind = "output_text" if role == "assistant" else "input_text"
    content = [{"type": kind, "text": text}]
    return codex("response_item", {"type": "message", "role": role, "content": content}, **more)


def codex_call(name, **arguments):
    payload = {"type": "function_call", "name": name, "arguments": json.dumps(arguments)}
    return codex("response_item", payload)


def gemini_cli(*messages, **more):
    return {
        "sessionId": SESSION,
        "projectHash": "7" * 64,
        "startTime": "2025-06-01T10:00:00.000Z",
        "lastUpdated": "2025-06-01T11:00:00.000Z",
        "messages": list(messages),
        **more,
    }


def gemini_cli_message(kind, content, *, key="m1", at="2025-06-01T10:00:00.000Z", **more):
    return {"id": key, "timestamp": at, "type": kind, "content": content, **more}


def copilot_request(key, text, *response, at=1_748_772_000_000, **more):
    return {
        "requestId": key,
        "message": {"text": text, "parts": [{"kind": "text", "text": text}]},
        "variableData": {"variables": []},
        "response": list(response),
        "timestamp": at,
        **more,
    }


def copilot(*requests, **more):
    return {
        "responderUsername": "GitHub Copilot",
        "initialLocation": "panel",
        "requests": list(requests),
        **more,
    }


def copilot_tool(tool="copilot_readFile", **data):
    return {"kind": "toolInvocationSerialized", "toolId": tool, "toolSpecificData": data}


def aider_prompt(text):
    return "\n" + "".join(f"#### {line}  \n" for line in text.split("\n"))


def aider(*pieces, at="2025-06-01 10:00:00"):
    """A session; Aider writes an answer with a blank line before and after it."""
    notes = "> Aider v0.86.1  \n> Git repo: .git with 3 files  \n"
    return "".join((f"\n# aider chat started at {at}\n\n", notes, *pieces))


def cursor(*messages, title="The pier"):
    """A chat of (speaker, text)."""
    head = f"# {title}\n_Exported on 6/1/2025 at 10:00:00 GMT+2 from Cursor (0.50.7)_\n"
    return head + "".join(f"\n---\n\n**{who}**\n\n{text}\n" for who, text in messages)


def cursor_bubble(key, text="", *, by_user=True, at="2025-06-01T10:00:00.000Z", **more):
    kind = 1 if by_user else 2
    return {"_v": 3, "bubbleId": key, "type": kind, "text": text, "createdAt": at, **more}


def cursor_call(key, name, result=None, **params):
    """A call of a tool; its arguments and its result are JSON within the JSON."""
    call = {"name": name, "params": json.dumps(params), "result": json.dumps(result)}
    return cursor_bubble(key, by_user=False, toolFormerData=call)


def cursor_composer(*bubbles, key="c-1", **more):
    """The rows of a chat."""
    headers = [{"bubbleId": each["bubbleId"], "type": each["type"]} for each in bubbles]
    about = {"composerId": key, "name": "The pier", "createdAt": 1_748_772_000_000}
    rows = {f"bubbleId:{key}:{each['bubbleId']}": each for each in bubbles}
    return {
        f"composerData:{key}": {**about, "fullConversationHeadersOnly": headers, **more},
        **rows,
    }


def cursor_database(path, *chats, folders=(), **rows):
    """A state.vscdb; `folders` are (chat, folder, whether a sub-agent has it)."""
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE ItemTable (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)")
        database.execute(
            "CREATE TABLE cursorDiskKV (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)"
        )
        for chat in (*chats, rows):
            for key, value in chat.items():
                database.execute("INSERT INTO cursorDiskKV VALUES (?, ?)", (key, json.dumps(value)))
        if folders:
            database.execute(
                "CREATE TABLE composerHeaders (composerId TEXT PRIMARY KEY, isSubagent INTEGER, "
                "value TEXT)"
            )
        for key, folder, is_sub_agent in folders:
            about = json.dumps({"workspaceIdentifier": {"id": "w", "uri": {"fsPath": folder}}})
            database.execute(
                "INSERT INTO composerHeaders VALUES (?, ?, ?)", (key, is_sub_agent, about)
            )
    return path


def cursor_line(role, *texts, calls=()):
    """A line of a transcript; `calls` are (tool, arguments)."""
    blocks = [{"type": "text", "text": text} for text in texts]
    blocks += [{"type": "tool_use", "name": name, "input": given} for name, given in calls]
    return {"role": role, "message": {"content": blocks}}


def cursor_typed(text):
    when = "<timestamp>Sunday, Jun 1, 2025, 10:00 AM (UTC+2)</timestamp>"
    return cursor_line("user", f"{when}\n<user_query>\n{text}\n</user_query>")
