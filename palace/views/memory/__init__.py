"""The page `/memory/`: the palace at a glance, and its search."""
