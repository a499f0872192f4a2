"""Adapters, run in a peer's own environment: its library, the standard library and numpy."""
