"""Who may see which rows: the reach of what is running, and the database's own rules for it."""
