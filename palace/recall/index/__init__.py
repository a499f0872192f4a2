"""In-memory indexes of palaces, their cache and their loader."""
