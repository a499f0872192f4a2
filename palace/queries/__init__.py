"""Read models: rows with counts and evidence, shared by pages and programs."""
