"""A palace as one zip that anybody can read, and that Loci reads back (docs/export-format.md)."""
