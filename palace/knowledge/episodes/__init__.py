"""Episodes: summaries of conversations, written by mining or stored by callers."""

from palace.knowledge.episodes.episode_store import (
    MOST_SUMMARY_CHARS,
    delete_episodes_of,
    delete_stored_episodes,
    episodes_of_conversation,
    latest_episodes,
    restore_episodes,
    search_episodes,
    search_episodes_of,
    store_episode,
    trash_episodes,
)
from palace.knowledge.episodes.episode_writer import write_due_episodes, write_episodes

__all__ = [
    "MOST_SUMMARY_CHARS",
    "delete_episodes_of",
    "delete_stored_episodes",
    "episodes_of_conversation",
    "latest_episodes",
    "restore_episodes",
    "search_episodes",
    "search_episodes_of",
    "store_episode",
    "trash_episodes",
    "write_due_episodes",
    "write_episodes",
]
