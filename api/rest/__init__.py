"""REST: the palace for programs, with one schema, problems as JSON, and keys."""
