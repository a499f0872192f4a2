"""Examples of requests in the OpenAPI schema: bodies as they can be sent, by name of operation."""

from __future__ import annotations

from typing import Any

EXAMPLES: dict[str, dict[str, Any]] = {
    "add_turns": {
        "session_id": "monday",
        "user_id": "ada",
        "messages": [
            {"role": "user", "content": "I just moved to Lisbon."},
            {"role": "assistant", "content": "How do you like it?"},
        ],
    },
    "file_conversation": {
        "source": "claude-code",
        "conversation_id": "2f1c9a30-7c1e-4a55-9d52-3f0c2a6be001",
        "project": "/home/ada/tides",
        "messages": [
            {
                "id": "m1",
                "role": "user",
                "content": "We keep the tide tables in Postgres.",
                "said_at": "2026-05-08T09:30:00Z",
            }
        ],
    },
    "recall": {"query": "Where does Ada live?", "user_id": "ada", "max_tokens": 512},
    "search": {"query": "Lisbon", "user_id": "ada", "limit": 5},
    "add_memories": {
        "messages": [{"role": "user", "content": "I am allergic to walnuts."}],
        "user_id": "ada",
    },
    "search_memories": {"query": "What can she not eat?", "user_id": "ada", "limit": 3},
    "list_entities_in_scope": {"user_id": "ada"},
    "create_webhook": {"url": "https://example.org/hook", "events": ["fact.changed"]},
    "set_working_memory": {"fields": {"step": "choosing a lens"}},
    "put_entry": {"value": "The tripod is in the blue cupboard."},
    "search_entries": {"query": "tripod"},
    "store_episode": {
        "conversation_id": "monday",
        "summary": "Ada moved to Lisbon and looks for a flat.",
    },
    "search_episodes": {"query": "moving house"},
    "mark_item": {"item": "skill:geology", "value": "read"},
    "create_chat_completion": {
        "model": "loci",
        "messages": [{"role": "user", "content": "Which lens did Nora recommend?"}],
        "user": "ada",
    },
    "create_response": {"model": "loci", "input": "Which lens did Nora recommend?", "user": "ada"},
    "create_embeddings": {"model": "loci", "input": "The tide tables are in Postgres."},
}
