"""The memory service: turns in, recollections out."""
