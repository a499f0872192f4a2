"""What a stretch of English conversation is about: segments, titles, subjects."""
