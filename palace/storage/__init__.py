"""Storage: messages in drawers, and their search indexes: passages, vectors, postings."""
