"""Who may see which rows: the access of what is running, and the database's own rules for it."""
