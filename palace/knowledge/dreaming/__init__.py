"""Dreams: what is held thought over while nobody waits, and changes proposed for it."""
