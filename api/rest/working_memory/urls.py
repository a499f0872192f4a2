"""URLs of working memory, ledger and episodes."""

from __future__ import annotations

from django.urls import path

from api.rest.working_memory.entries import EntriesSearchView, EntriesView, EntryView, InventoryView
from api.rest.working_memory.episodes import EpisodesView, SearchEpisodesView, StoreView
from api.rest.working_memory.ledger import CheckView, EvictView, LedgerView, MarkView
from api.rest.working_memory.working import WorkingMemoryView

NAMESPACE = "namespaces/<str:kind>/<str:name>"

urlpatterns = [
    path("working-memory/<id:conversation_id>", WorkingMemoryView.as_view(), name="working_memory"),
    path(f"{NAMESPACE}/entries", EntriesView.as_view(), name="entries"),
    path(f"{NAMESPACE}/entries/<path:key>", EntryView.as_view(), name="entry"),
    path(f"{NAMESPACE}/search", EntriesSearchView.as_view(), name="search_entries"),
    path(f"{NAMESPACE}/inventory", InventoryView.as_view(), name="inventory"),
    path("episodic/store", StoreView.as_view(), name="store_episode"),
    path("episodic/search", SearchEpisodesView.as_view(), name="search_episodes"),
    path("episodic/<id:conversation_id>", EpisodesView.as_view(), name="episodes"),
    # Longer paths first, because an id may contain slashes.
    path("ledger/<id:conversation_id>/check", CheckView.as_view(), name="check_item"),
    path("ledger/<id:conversation_id>/mark", MarkView.as_view(), name="mark_item"),
    path("ledger/<id:conversation_id>/evict", EvictView.as_view(), name="evict_item"),
    path("ledger/<id:conversation_id>", LedgerView.as_view(), name="ledger"),
]
