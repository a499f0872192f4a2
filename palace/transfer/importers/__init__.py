"""Other programs' exports, read as transcripts. Nothing here writes, or knows of a database."""
