"""What the worker does unasked: each task's name, and after how many seconds it runs again."""

from __future__ import annotations

from typing import Any

HOUR_S = 3600
DAY_S = 24 * HOUR_S

TASKS: dict[str, tuple[str, float]] = {
    "take up conversations and replies": ("chat.tasks.take_up_conversations", 10),
    "take up what a killed worker left": ("palace.tasks.take_up_unfinished", 10),
    "deliver webhooks": ("palace.tasks.deliver_webhooks", 5),
    "embed what an outage left": ("palace.tasks.embed_missing", 60),
    "dream where it is night": ("palace.tasks.dream_where_it_is_night", HOUR_S),
    "purge what was long in the trash": ("palace.tasks.purge_trash", DAY_S),
    "let go what wings do not keep": ("palace.tasks.keep_by_rules_everywhere", DAY_S),
    "delete accounts that were closed": ("palace.tasks.delete_closed_accounts", 60),
    "forget sessions that have ended": ("settings_app.tasks.forget_ended_sessions", DAY_S),
    "forget what apps need no more": ("api.tasks.forget_unused", DAY_S),
    "forget what programs changed long ago": ("settings_app.tasks.forget_old_audit_lines", DAY_S),
    "forget what was sent to models long ago": ("settings_app.tasks.forget_old_sent", DAY_S),
    "forget what was answered to programs": ("palace.tasks.forget_answered_writes", DAY_S),
    "forget working memory of deleted palaces": ("palace.tasks.forget_deleted_palaces", DAY_S),
    "delete old webhook deliveries": ("palace.tasks.forget_old_deliveries", DAY_S),
    "tidy the vector store": ("palace.tasks.tidy_vectors", DAY_S),
    "forget old cached vectors": ("palace.tasks.prune_embedding_cache", DAY_S),
}


def timetable(back_up_every_h: float) -> dict[str, dict[str, Any]]:
    """As Celery's beat reads it.

    Args:
        back_up_every_h: Hours from backup to backup; 0 for none.
    """
    tasks = dict(TASKS)
    if back_up_every_h:
        tasks["back up"] = ("config.tasks.back_up", back_up_every_h * HOUR_S)
    return {what: {"task": name, "schedule": every_s} for what, (name, every_s) in tasks.items()}
