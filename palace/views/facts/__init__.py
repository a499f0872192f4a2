"""The pages of facts: the list, one fact, and all changes."""
