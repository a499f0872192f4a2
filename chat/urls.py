"""The chat's addresses."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, path

from chat.views import agents, conversations, ledger, message_actions, messages, model_uses, sent

urlpatterns: list[URLPattern | URLResolver] = [
    path("settings/model/uses/", model_uses.model_uses, name="model_uses"),
    path("settings/sent/", sent.sent, name="sent"),
    path("chat/", conversations.chat, name="chat"),
    path("chat/selected/", conversations.selected_conversations, name="selected_conversations"),
    path("chat/agents/", agents.agents, name="agents"),
    path("chat/agents/<uuid:uuid>/", agents.agent_detail, name="agent_detail"),
    path("chat/agents/<uuid:uuid>/delete/", agents.delete_agent, name="delete_agent"),
    path("chat/reply/<uuid:uuid>/stop/", messages.stop_reply, name="stop_reply"),
    path("chat/reply/<uuid:uuid>/stream/", messages.reply_stream, name="reply_stream"),
    path("chat/reply/<uuid:uuid>/memories/", messages.reply_memories, name="reply_memories"),
    path(
        "chat/message/<uuid:uuid>/memory/", message_actions.message_memory_of, name="message_memory"
    ),
    path(
        "chat/message/<uuid:uuid>/fact/<uuid:memory>/",
        message_actions.message_fact,
        name="message_fact",
    ),
    path("chat/message/<uuid:uuid>/edit/", message_actions.edit_message, name="edit_message"),
    path("chat/message/<uuid:uuid>/text/", message_actions.message_text, name="message_text"),
    path("chat/<uuid:uuid>/earlier/", message_actions.earlier_versions, name="earlier_versions"),
    path("chat/<uuid:uuid>/choose/", message_actions.choose, name="choose"),
    path("chat/<uuid:uuid>/", conversations.conversation_detail, name="conversation_detail"),
    path("chat/<uuid:uuid>/say/", messages.say, name="say"),
    path("chat/<uuid:uuid>/retry/", messages.retry, name="retry"),
    path(
        "chat/<uuid:uuid>/remember/",
        conversations.remember_conversation,
        name="remember_conversation",
    ),
    path("chat/<uuid:uuid>/ledger/", ledger.conversation_ledger, name="conversation_ledger"),
    path("chat/<uuid:uuid>/rename/", conversations.rename_conversation, name="rename_conversation"),
    path("chat/<uuid:uuid>/delete/", conversations.delete_conversation, name="delete_conversation"),
]
