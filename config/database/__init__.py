"""Django's Postgres with row security, as an engine: Django looks for it by its package."""
