"""The fact API: statements that were told, searched, changed, and what connects them."""
