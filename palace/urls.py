"""URLs of the palace's pages."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, path

from palace.views import (
    account,
    activity,
    dreams,
    episodes,
    go_anywhere,
    health,
    imports,
    memory,
    places,
    trash,
    webhooks,
    working,
)
from palace.views.edit_places import place_edit, selected, wing_keeping
from palace.views.entities import views as entities
from palace.views.entities.edits import (
    entity_edit,
    entity_merge,
    entity_rename,
    entity_split,
    entity_undo,
)
from palace.views.entities.selected import selected_entities
from palace.views.facts import changes as fact_changes
from palace.views.facts import corrections
from palace.views.facts import views as facts
from palace.views.facts.selected import selected_facts
from palace.views.inbox import views as inbox
from palace.views.inbox.rooms import review_room
from palace.views.recalls import views as recalls

urlpatterns: list[URLPattern | URLResolver] = [
    path("health", health.health, name="health"),
    path("health/live", health.live, name="health_live"),
    path("health/ready", health.ready, name="health_ready"),
    path("memory/", memory.memory, name="memory"),
    path("memory/wing/<uuid:uuid>/", places.wing_detail, name="wing_detail"),
    path("memory/wing/<uuid:uuid>/timeline/", places.wing_timeline, name="wing_timeline"),
    path("memory/wing/<uuid:uuid>/edit/", places.wing_edit, name="wing_edit"),
    path("memory/wing/<uuid:uuid>/keeping/", wing_keeping, name="wing_keeping"),
    path("memory/selected/", selected, name="selected"),
    path("memory/wing/undo/<uuid:uuid>/", places.wing_merge_undo, name="wing_merge_undo"),
    path("memory/<str:kind>/<uuid:uuid>/change/", place_edit, name="place_edit"),
    path("memory/wing/<uuid:uuid>/merge/", places.wing_merge, name="wing_merge"),
    path("memory/room/<uuid:uuid>/", places.room_detail, name="room_detail"),
    path("memory/closet/<uuid:uuid>/", places.closet_detail, name="closet_detail"),
    path("memory/drawer/<uuid:uuid>/", places.drawer_detail, name="drawer_detail"),
    path("memory/recall/<uuid:uuid>/", recalls.recall_detail, name="recall_detail"),
    path("memory/cases/", recalls.recall_cases, name="recall_cases"),
    path("memory/cases/try/", recalls.try_cases, name="try_cases"),
    path("memory/cases/<uuid:uuid>/delete/", recalls.delete_case, name="delete_case"),
    path("memory/activity/", activity.activities, name="activities"),
    path("memory/trash/", trash.trash, name="trash"),
    path("memory/trash/<int:key>/restore/", trash.restore_batch, name="restore_batch"),
    path("memory/trash/<int:key>/empty/", trash.empty_trash, name="empty_trash"),
    path("memory/<str:kind>/<uuid:uuid>/trash/", trash.trash_place, name="trash_place"),
    path("memory/drawer/<uuid:uuid>/restore/", trash.restore_drawer, name="restore_drawer"),
    path("memory/drawer/<uuid:uuid>/purge/", trash.purge_drawer, name="purge_drawer"),
    path("memory/episodes/", episodes.episodes, name="episodes"),
    path("memory/facts/", facts.facts, name="facts"),
    path("memory/facts/selected/", selected_facts, name="selected_facts"),
    path("memory/facts/changes/", fact_changes.fact_changes, name="fact_changes"),
    path("memory/facts/<uuid:memory>/", facts.fact_detail, name="fact_detail"),
    path("memory/facts/<uuid:memory>/correct/", corrections.correct_fact, name="correct_fact"),
    path("memory/facts/<uuid:memory>/rewrite/", corrections.rewrite_fact, name="rewrite_fact"),
    path("memory/facts/<uuid:memory>/about/", corrections.reassign_fact, name="reassign_fact"),
    path("memory/facts/<uuid:memory>/end/", corrections.end_fact, name="end_fact"),
    path("memory/facts/<uuid:memory>/wrong/", corrections.wrong_fact, name="wrong_fact"),
    path("memory/facts/<uuid:memory>/undo/", corrections.undo_fact, name="undo_fact"),
    path("memory/facts/<uuid:memory>/retire/", corrections.retire_fact, name="retire_fact"),
    path("memory/facts/<uuid:memory>/restore/", corrections.restore_fact, name="restore_fact"),
    path("memory/people-and-things/", entities.entities, name="entities"),
    path("memory/people-and-things/selected/", selected_entities, name="selected_entities"),
    path("memory/people-and-things/<uuid:uuid>/", entities.entity_detail, name="entity_detail"),
    path("memory/people-and-things/<uuid:uuid>/edit/", entity_edit, name="entity_edit"),
    path(
        "memory/people-and-things/<uuid:uuid>/merge/",
        entity_merge,
        name="entity_merge",
    ),
    path(
        "memory/people-and-things/<uuid:uuid>/split/",
        entity_split,
        name="entity_split",
    ),
    path("memory/people-and-things/<uuid:uuid>/rename/", entity_rename, name="entity_rename"),
    path("memory/people-and-things/undo/<uuid:uuid>/", entity_undo, name="entity_undo"),
    path("memory/inbox/", inbox.inbox, name="inbox"),
    path("memory/inbox/rooms/<uuid:uuid>/<slug:do>/", review_room, name="review_room"),
    path("memory/inbox/decide/", inbox.decide_proposals, name="decide_proposals"),
    path("memory/inbox/dream/", dreams.dream_now, name="dream_now"),
    path("memory/inbox/<uuid:uuid>/accept/", inbox.accept_proposal, name="accept_proposal"),
    path("memory/inbox/<uuid:uuid>/reject/", inbox.reject_proposal, name="reject_proposal"),
    path("memory/inbox/<uuid:uuid>/undo/", inbox.undo_proposal, name="undo_proposal"),
    path("settings/dreams/", dreams.dream_settings, name="dream_settings"),
    path("settings/data/", account.data_settings, name="data_settings"),
    path("settings/data/export/", account.export_palace, name="export_palace"),
    path("settings/account/delete/", account.delete_account, name="delete_account"),
    path("account-deleted/<str:receipt>/", account.account_deleted, name="account_deleted"),
    path("settings/webhooks/", webhooks.webhooks, name="webhooks"),
    path("settings/webhooks/<uuid:uuid>/", webhooks.webhook_detail, name="webhook_detail"),
    path("settings/webhooks/<uuid:uuid>/try/", webhooks.webhook_try, name="webhook_try"),
    path("settings/webhooks/<uuid:uuid>/switch/", webhooks.webhook_switch, name="webhook_switch"),
    path("settings/webhooks/<uuid:uuid>/secret/", webhooks.webhook_secret, name="webhook_secret"),
    path("settings/webhooks/<uuid:uuid>/delete/", webhooks.webhook_delete, name="webhook_delete"),
    path("memory/working/", working.working_memory, name="working_memory"),
    path("memory/working/delete/", working.delete_working, name="delete_working"),
    path("memory/import/", imports.imports, name="imports"),
    path("memory/import/now/", imports.import_now, name="import_now"),
    path("memory/sample/", imports.sample_load, name="sample_load"),
    path("memory/sample/remove/", imports.sample_remove, name="sample_remove"),
    path("memory/import/<uuid:uuid>/", imports.import_detail, name="import_detail"),
    path("memory/import/<uuid:uuid>/start/", imports.import_start, name="import_start"),
    path("memory/import/<uuid:uuid>/pause/", imports.import_pause, name="import_pause"),
    path("memory/import/<uuid:uuid>/discard/", imports.import_discard, name="import_discard"),
    path("go/", go_anywhere.go, name="go"),
    path("keyboard/", go_anywhere.keyboard, name="keyboard"),
    path("components/", go_anywhere.components, name="components"),
    path("memory/pointer/", places.pointer, name="pointer"),
    path("memory/d/<path:text>", places.pointer, name="pointer_path"),
]
