"""Mining pipeline: file messages, mine them, extract facts, write episode summaries."""
