"""Restore a Loci export into an empty palace (docs/export-format.md)."""
