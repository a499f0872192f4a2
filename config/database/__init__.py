"""A Django database engine: Postgres with pooled connections."""
