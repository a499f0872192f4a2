"""Parsers of other programs' exports, which yield transcripts. They do not use the database."""
