"""The fact API: add, search and edit memories; entities and their relations."""
