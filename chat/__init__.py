"""Chat: agents, conversations, and replies with memories."""
