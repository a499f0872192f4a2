"""What runs inside a peer's own environment: that library, the standard library and numpy."""
