"""Messages in drawers, and what search needs of them: passages, vectors, postings."""
