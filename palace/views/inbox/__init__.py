"""The inbox: proposals to accept, reject and undo."""
