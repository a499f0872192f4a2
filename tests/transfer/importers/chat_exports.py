"""Builders of small exports, shaped as self-hosted chats and messengers write them."""

from __future__ import annotations


def open_webui_message(key, text, *, role="user", at=1_717_236_000, **more):
    return {"id": key, "role": role, "content": text, "timestamp": at, "childrenIds": [], **more}


def open_webui(*messages, chat_id="w-1", title="The pier", current=None):
    """A chat; messages without a `parentId` follow the one before."""
    tree, before = {}, None
    for message in messages:
        tree[message["id"]] = {"parentId": before, **message}
        before = message["id"]
    history = {"messages": tree, "currentId": current or before}
    chat = {"title": title, "models": ["llama"], "history": history}
    return {"id": chat_id, "title": title, "chat": chat, "created_at": 1_717_236_000}


def librechat_message(key, text, *, by_user=True, at="2024-06-01T10:00:00.000Z", **more):
    return {
        "messageId": key,
        "parentMessageId": "00000000-0000-0000-0000-000000000000",
        "sender": "User" if by_user else "Model",
        "text": text,
        "isCreatedByUser": by_user,
        "createdAt": at,
        **more,
    }


def librechat(*messages, **more):
    return {
        "conversationId": "l-1",
        "endpoint": "openAI",
        "title": "The pier",
        "exportAt": "10:00:00 GMT+0000",
        "branches": True,
        "recursive": False,
        "messages": list(messages),
        **more,
    }


def telegram_message(text, *, key=1, at="1717236000", sender="Ana", **more):
    return {
        "id": key,
        "type": "message",
        "date": "2024-06-01T12:00:00",
        "date_unixtime": at,
        "from": sender,
        "from_id": f"user{len(sender)}",
        "text": text,
        "text_entities": [],
        **more,
    }


def telegram(*messages, name="Ben", kind="personal_chat", chat_id=7):
    return {"name": name, "type": kind, "id": chat_id, "messages": list(messages)}


def deepseek(*messages, **more):
    """A conversation; `messages` are (id, text), by the user and DeepSeek in turn."""
    mapping = {"root": {"id": "root", "parent": None, "children": [], "message": None}}
    before = "root"
    for place, (key, text) in enumerate(messages):
        kind = "RESPONSE" if place % 2 else "REQUEST"
        said = {
            "files": [],
            "model": "deepseek-chat",
            "inserted_at": "2024-06-01T12:00:00.000000+02:00",
            "fragments": [{"type": kind, "content": text}],
        }
        mapping[key] = {"id": key, "parent": before, "children": [], "message": said}
        before = key
    return {
        "id": "d-1",
        "title": "The pier",
        "inserted_at": "2024-06-01T12:00:00.000000+02:00",
        "mapping": mapping,
        **more,
    }


def grok_response(key, text, *, sender="human", at=1_717_236_000_000, **more):
    stamp = {"$date": {"$numberLong": str(at)}}
    said = {"_id": key, "message": text, "sender": sender, "create_time": stamp, **more}
    return {"response": said, "share_link": None}


def grok(*responses, **more):
    about = {"id": "g-1", "title": "The pier", "create_time": "2024-06-01T10:00:00.000000Z", **more}
    return {"conversation": about, "responses": list(responses)}


def grok_export(*conversations):
    return {"conversations": list(conversations), "projects": [{"id": "p"}], "tasks": []}


def discord_message(text, *, key="1", at="2024-06-01T12:00:00+02:00", name="Ana", **more):
    return {
        "id": key,
        "type": "Default",
        "timestamp": at,
        "timestampEdited": None,
        "isPinned": False,
        "content": text,
        "author": {"id": "7", "name": "ana.p", "nickname": name, "isBot": False, "roles": []},
        "attachments": [],
        "embeds": [],
        "stickers": [],
        "reactions": [],
        "mentions": [],
        **more,
    }


def discord(*messages):
    return {
        "guild": {"id": "1", "name": "Harbour", "iconUrl": ""},
        "channel": {"id": "2", "type": "GuildTextChat", "name": "ferries", "topic": None},
        "dateRange": {"after": None, "before": None},
        "exportedAt": "2024-06-03T00:00:00+00:00",
        "messages": list(messages),
        "messageCount": len(messages),
    }


def sharegpt(*messages, **more):
    """A conversation of (from, value)."""
    said = [{"from": speaker, "value": text} for speaker, text in messages]
    return {"id": "s-1", "conversations": said, **more}


def silly_tavern_head(**more):
    return {"user_name": "Ana", "character_name": "Ferryman", "chat_metadata": {}, **more}


def silly_tavern(text, *, by_user=True, at="2024-06-01T10:00:00.000Z", **more):
    return {
        "name": "Ana" if by_user else "Ferryman",
        "is_user": by_user,
        "is_system": False,
        "send_date": at,
        "mes": text,
        "extra": {},
        **more,
    }


def perplexity_entry(query, answer, *, at="2024-06-01T10:00:00.000000Z", **more):
    return {"query": query, "answer": answer, "created_at": at, "query_status": "COMPLETED", **more}


def perplexity(*entries, title="The pier", **more):
    """A thread of an account's data."""
    about = {"context_title": title, "created_at": "2024-06-01T10:00:00.000000Z", "mode": "COPILOT"}
    return {**about, "collection_uuid": None, "entries": list(entries), **more}


def perplexity_loaded(*asked):
    """A thread as the site loads it; `asked` are (id, question, answer)."""
    entries = [
        {
            "backend_uuid": key,
            "context_uuid": "p-1",
            "uuid": key,
            "thread_title": "The pier",
            "related_queries": ["And the next one?"],
            "query_str": question,
            "entry_created_datetime": "2024-06-01T10:00:00.000000",
            "blocks": [
                {"intended_usage": "plan", "plan_block": {"goals": []}},
                {"intended_usage": "ask_text", "markdown_block": {"answer": answer}},
                {"intended_usage": "web_results", "web_result_block": {"web_results": []}},
            ],
        }
        for key, question, answer in asked
    ]
    return {"status": "success", "entries": entries, "has_next_page": False, "next_cursor": None}
