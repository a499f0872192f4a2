"""The periodic tasks of the worker: each task's name and its interval in seconds."""

from __future__ import annotations

from typing import Any

HOUR_S = 3600
DAY_S = 24 * HOUR_S

TASKS: dict[str, tuple[str, float]] = {
    "resume conversations and replies": ("chat.tasks.take_up_conversations", 10),
    "resume unfinished work": ("palace.tasks.take_up_unfinished", 10),
    "deliver webhooks": ("palace.tasks.deliver_webhooks", 5),
    "embed missing vectors": ("palace.tasks.embed_missing", 60),
    "dream at night": ("palace.tasks.dream_where_it_is_night", HOUR_S),
    "purge expired trash": ("palace.tasks.purge_trash", DAY_S),
    "apply retention rules": ("palace.tasks.keep_by_rules_everywhere", DAY_S),
    "delete closed accounts": ("palace.tasks.delete_closed_accounts", 60),
    "delete expired sessions": ("settings_app.tasks.forget_ended_sessions", DAY_S),
    "delete expired codes of apps": ("api.tasks.forget_unused", DAY_S),
    "delete old audit lines": ("settings_app.tasks.forget_old_audit_lines", DAY_S),
    "delete old records of what was sent": ("settings_app.tasks.forget_old_sent", DAY_S),
    "delete old answers to programs": ("palace.tasks.forget_answered_writes", DAY_S),
    "delete working memory of deleted palaces": ("palace.tasks.forget_deleted_palaces", DAY_S),
    "delete old webhook deliveries": ("palace.tasks.forget_old_deliveries", DAY_S),
    "tidy the vector store": ("palace.tasks.tidy_vectors", DAY_S),
    "delete old cached vectors": ("palace.tasks.prune_embedding_cache", DAY_S),
}


# Seconds after which a waiting task is dropped, as its next one comes. The tasks say the same; the
# clock does not import them.
EXPIRES_S = {
    "chat.tasks.take_up_conversations": 60,
    "config.tasks.back_up": 6 * HOUR_S,
    "palace.tasks.delete_closed_accounts": 60,
    "palace.tasks.deliver_webhooks": 5,
    "palace.tasks.dream_where_it_is_night": 60,
    "palace.tasks.embed_missing": HOUR_S,
    "palace.tasks.keep_by_rules_everywhere": 60,
    "palace.tasks.take_up_unfinished": 60,
}


def timetable(back_up_every_h: float) -> dict[str, dict[str, Any]]:
    """The schedule in the format of Celery beat.

    Args:
        back_up_every_h: Hours from backup to backup; 0 for none.
    """
    tasks = dict(TASKS)
    if back_up_every_h:
        tasks["back up"] = ("config.tasks.back_up", back_up_every_h * HOUR_S)
    return {
        title: {"task": name, "schedule": every_s, "options": _options(name)}
        for title, (name, every_s) in tasks.items()
    }


def _options(name: str) -> dict[str, float]:
    return {"expires": EXPIRES_S[name]} if name in EXPIRES_S else {}
