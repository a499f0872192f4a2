"""Row-level security: which rows the current code may access, and the database's policies."""
