"""The memory service: store turns, recall, search."""
