"""URLs of the REST API, mem0's client, the proxy, and pages of connected apps.

MCP and the endpoints of OAuth are ASGI apps of their own.
"""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, include, path, register_converter

from api import mem0
from api.mem0 import for_mem0
from api.oauth import views as oauth
from api.oauth.registration import AUTHORIZE
from api.openai import views
from api.openai import views as proxy
from api.openai.access import with_openai_errors
from api.rest import memory_service, webhooks
from api.rest.facts import (
    EntitiesView,
    HistoryView,
    MemoriesView,
    MemoryView,
    RelationsView,
    ResetView,
    SearchMemoriesView,
    TimelineView,
)
from api.rest.memory_service import EpisodesView, SearchEpisodesView, StoreView
from api.rest.openapi import api_reference, api_schema
from api.rest.palace import owner, places, record, trash
from api.rest.transfer import ConversationsView, ExportView
from api.rest.working_memory import (
    CheckView,
    EntriesSearchView,
    EntriesView,
    EntryView,
    EvictView,
    InventoryView,
    LedgerView,
    MarkView,
    WorkingMemoryView,
)

NAMESPACE = "namespaces/<str:kind>/<str:name>"
_NO_CONVERSATIONS = (
    "OpenAI's conversations are not there; send previous_response_id, or the header "
    "X-Loci-Conversation. This address stores conversations of other programs:"
)


class AnyId:
    """An id in a path: any storable text, with slashes and line breaks.

    A server decodes `%2F` before it looks for the view.
    """

    regex = r"[\s\S]+"

    def to_python(self, value: str) -> str:
        return value

    def to_url(self, value: str) -> str:
        return value


register_converter(AnyId, "id")

_REST: list[URLPattern] = [
    path("api/schema/", api_schema, name="schema"),
    path("api/docs/", api_reference, name="reference"),
    path(
        "v1/conversations/",
        with_openai_errors(ConversationsView.as_view(), _NO_CONVERSATIONS),
        name="conversations",
    ),
    path("v1/export", ExportView.as_view(), name="export"),
    path("v1/wings/", places.WingsView.as_view(), name="wings"),
    path("v1/wings/<uuid:uuid>/", places.WingView.as_view(), name="wing"),
    path("v1/wings/<uuid:uuid>/merge/", places.WingMergeView.as_view(), name="wing_merge"),
    path("v1/wings/<uuid:uuid>/rooms/", places.WingRoomsView.as_view(), name="wing_rooms"),
    path("v1/rooms/<uuid:uuid>/", places.RoomView.as_view(), name="room"),
    path("v1/rooms/<uuid:uuid>/closets/", places.RoomClosetsView.as_view(), name="room_closets"),
    path("v1/rooms/<uuid:uuid>/drawers/", places.RoomDrawersView.as_view(), name="room_drawers"),
    path("v1/rooms/<uuid:uuid>/move/", places.RoomMoveView.as_view(), name="room_move"),
    path("v1/closets/<uuid:uuid>/", places.ClosetView.as_view(), name="closet"),
    path("v1/drawers/", places.DrawersView.as_view(), name="drawers"),
    path("v1/drawers/by-pointer/", places.PointerView.as_view(), name="by_pointer"),
    path("v1/drawers/move/", places.DrawersMoveView.as_view(), name="drawers_move"),
    path("v1/drawers/trash/", places.DrawersTrashView.as_view(), name="drawers_trash"),
    path("v1/drawers/<uuid:uuid>/", places.DrawerView.as_view(), name="drawer"),
    path("v1/trash/", trash.TrashView.as_view(), name="trash"),
    path("v1/trash/restore/", trash.RestoreView.as_view(), name="trash_restore"),
    path("v1/trash/empty/", trash.EmptyView.as_view(), name="trash_empty"),
    path("v1/trash/<uuid:uuid>/", trash.TrashedView.as_view(), name="trashed"),
    path("v1/recollections/", record.RecollectionsView.as_view(), name="recollections"),
    path("v1/recollections/<uuid:uuid>/", record.RecollectionView.as_view(), name="recollection"),
    path("v1/activity/", record.ActivityView.as_view(), name="activity"),
    path("v1/usage/", owner.UsageView.as_view(), name="usage"),
    path("v1/settings/", owner.SettingsView.as_view(), name="settings"),
    path("v1/palaces/", owner.PalacesView.as_view(), name="palaces"),
    path("v1/webhooks/", webhooks.WebhooksView.as_view(), name="webhooks"),
    path("v1/webhooks/<uuid:uuid>/", webhooks.WebhookView.as_view(), name="webhook"),
    path("v1/webhooks/<uuid:uuid>/test/", webhooks.WebhookTestView.as_view(), name="webhook_test"),
    path(
        "v1/webhooks/<uuid:uuid>/secret/",
        webhooks.WebhookSecretView.as_view(),
        name="webhook_secret",
    ),
    path(
        "v1/webhooks/<uuid:uuid>/deliveries/",
        webhooks.DeliveriesView.as_view(),
        name="webhook_deliveries",
    ),
    path("turns", memory_service.TurnsView.as_view(), name="turns"),
    path("recall", memory_service.RecallView.as_view(), name="recall"),
    path("search", memory_service.SearchView.as_view(), name="search"),
    path(
        "users/<id:user_id>/memories",
        memory_service.UserMemoriesView.as_view(),
        name="user_memories",
    ),
    path("users/<id:user_id>", memory_service.UserView.as_view(), name="user"),
    path("sessions/<id:session_id>", memory_service.SessionView.as_view(), name="session"),
    path(
        "v1/memories/",
        for_mem0(MemoriesView.as_view(), mem0.MemoriesView.as_view()),
        name="memories",
    ),
    path(
        "v1/memories/search/",
        for_mem0(SearchMemoriesView.as_view(), mem0.SearchView.as_view()),
        name="search_memories",
    ),
    path(
        "v1/memories/<str:memory_id>/",
        for_mem0(MemoryView.as_view(), mem0.MemoryView.as_view()),
        name="memory",
    ),
    path(
        "v1/memories/<str:memory_id>/history/",
        for_mem0(HistoryView.as_view(), mem0.HistoryView.as_view()),
        name="history",
    ),
    path("v1/reset/", ResetView.as_view(), name="reset"),
    path(
        "v1/entities/",
        for_mem0(EntitiesView.as_view(), mem0.EntitiesView.as_view()),
        name="entities",
    ),
    path("v1/entities/<id:name>/relations/", RelationsView.as_view(), name="relations"),
    path("v1/entities/<id:name>/timeline/", TimelineView.as_view(), name="timeline"),
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

# Addresses that only mem0's client has; those it shares with ours are above.
_MEM0: list[URLPattern] = [
    path("v1/ping/", mem0.PingView.as_view(), name="ping"),
    path("v1/batch/", mem0.BatchView.as_view(), name="batch"),
    path("v2/memories/", mem0.ListView.as_view(), name="memories_v2"),
    path("v2/memories/search/", mem0.SearchView.as_view(), name="search_v2"),
    path("v2/entities/<str:kind>/<id:name>/", mem0.EntityView.as_view(), name="entity"),
    path("v3/memories/", mem0.ListView.as_view(), name="memories_v3"),
    path("v3/memories/add/", mem0.AddView.as_view(), name="add"),
    path("v3/memories/search/", mem0.SearchView.as_view(), name="search_v3"),
]

_PROXY: list[URLPattern] = [
    path("chat/completions", proxy.chat_completions, name="chat_completions"),
    path("responses", proxy.responses, name="responses"),
    path("embeddings", views.embeddings, name="embeddings"),
    path("models", proxy.models, name="models"),
    path("models/<path:name>", proxy.model, name="model"),
]

_APPS: list[URLPattern] = [
    path(AUTHORIZE.removeprefix("/"), oauth.authorize, name="authorize"),
    path("settings/apps/", oauth.connected_apps, name="connected_apps"),
    path("settings/apps/<uuid:uuid>/end/", oauth.end_app, name="end_app"),
]

urlpatterns: list[URLPattern | URLResolver] = [
    path("", include((_REST, "api"))),
    path("", include((_MEM0, "mem0"))),
    path("v1/", include((_PROXY, "proxy"))),
    *_APPS,
]
