"""Builders of small exports, shaped as ChatGPT and Claude write them."""

from __future__ import annotations

import hashlib
import json
import zipfile

STARTED = 1_717_236_000.0  # 2024-06-01T10:00:00Z


def said(node_id, text, *, parent, role="user", at=STARTED, **more):
    """A node of ChatGPT's tree that holds one message."""
    content = more.pop("content", {"content_type": "text", "parts": [text]})
    message = {
        "id": node_id,
        "author": {"role": role, "name": more.pop("name", None), "metadata": {}},
        "create_time": at,
        "update_time": None,
        "content": content,
        "status": "finished_successfully",
        "weight": 1.0,
        "metadata": more.pop("metadata", {}),
        "recipient": more.pop("recipient", "all"),
        **more,
    }
    return {"id": node_id, "message": message, "parent": parent, "children": []}


def root(node_id="root"):
    return {"id": node_id, "message": None, "parent": None, "children": []}


def chatgpt(*nodes, current, conversation_id="c-1", title="Tea", created=STARTED, **more):
    mapping = {node["id"]: node for node in nodes}
    for node in nodes:
        if node["parent"] in mapping:
            mapping[node["parent"]]["children"].append(node["id"])
    return {
        "title": title,
        "create_time": created,
        "update_time": created,
        "mapping": mapping,
        "current_node": current,
        "conversation_id": conversation_id,
        "id": conversation_id,
        **more,
    }


def chatgpt_talk(*texts, conversation_id="c-1", **more):
    """A conversation without branches: user and assistant in turn, a minute apart."""
    nodes = [root()]
    for index, text in enumerate(texts):
        role = "assistant" if index % 2 else "user"
        node_id = f"{conversation_id}-m{index}"
        at = STARTED + 60 * index
        nodes.append(said(node_id, text, parent=nodes[-1]["id"], role=role, at=at))
    return chatgpt(*nodes, current=nodes[-1]["id"], conversation_id=conversation_id, **more)


def claude_message(uuid, text, *, sender="human", at="2024-06-01T10:00:00.000000Z", **more):
    return {
        "uuid": uuid,
        "text": text,
        "content": [{"type": "text", "text": text}],
        "sender": sender,
        "created_at": at,
        "updated_at": at,
        "attachments": [],
        "files": [],
        **more,
    }


def claude(*messages, uuid="k-1", name="Bread"):
    return {
        "uuid": uuid,
        "name": name,
        "created_at": "2024-06-01T09:59:00.000000Z",
        "updated_at": "2024-06-01T11:00:00.000000Z",
        "account": {"uuid": "somebody"},
        "chat_messages": list(messages),
    }


def plain(*texts, conversation_id="p-1", **more):
    messages = [
        {
            "id": f"m{index}",
            "role": "assistant" if index % 2 else "user",
            "text": text,
            "said_at": f"2024-06-01T10:{index % 60:02}:00Z",
        }
        for index, text in enumerate(texts)
    ]
    return {"id": conversation_id, "messages": messages, **more}


def write_json(path, conversations):
    path.write_text(json.dumps(conversations))
    return path


def write_lines(path, conversations):
    path.write_text("".join(json.dumps(each) + "\n" for each in conversations))
    return path


def write_zip(path, members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            as_it_is = isinstance(content, str | bytes)
            archive.writestr(name, content if as_it_is else json.dumps(content))
    return path


def slack_message(text, *, ts="1717236000.000100", user="U1", **more):
    return {"type": "message", "user": user, "text": text, "ts": ts, **more}


def slack(days, *, users=None, channels=None, **more):
    """The members of Slack's zip. `days` is messages by folder and day."""
    people = [
        {"id": "U1", "name": "ana", "profile": {"display_name": "Ana", "real_name": "Ana Horvat"}},
        {"id": "U2", "name": "ben", "profile": {"display_name": "", "real_name": "Ben Ito"}},
        {"id": "U3", "name": "build", "is_bot": True, "profile": {"real_name": "Build"}},
    ]
    return {
        "users.json": people if users is None else users,
        "channels.json": channels or [{"id": "C1", "name": "general", "members": ["U1", "U2"]}],
        **{f"{place}.json": messages for place, messages in days.items()},
        **more,
    }


def gemini(prompt, *answers, at="2024-06-01T10:00:00.123Z", **more):
    return {
        "header": "Gemini Apps",
        "title": prompt,
        "time": at,
        "products": ["Gemini Apps"],
        "activityControls": ["Gemini Apps Activity"],
        "safeHtmlItem": [{"html": answer} for answer in answers],
        **more,
    }


def loci(rooms, drawers):
    """The members of a Loci export's zip, as far as messages are taken from it."""
    files = {
        f"data/{name}.jsonl": "".join(json.dumps(each) + "\n" for each in lines)
        for name, lines in {"rooms": rooms, "drawers": drawers}.items()
    }
    sums = {
        name: {"sha256": hashlib.sha256(content.encode()).hexdigest()}
        for name, content in files.items()
    }
    return {"manifest.json": {"format": "loci-palace", "version": 1, "files": sums}, **files}
