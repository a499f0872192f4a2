"""A Django database engine: Postgres with row-level security and pooled connections."""
