"""The pages of facts: the list, one fact, its edits, and all changes."""
