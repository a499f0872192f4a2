"""A Loci export put back as it was, into a palace that holds nothing (docs/export-format.md)."""
