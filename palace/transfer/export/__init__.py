"""Export a palace as a zip, which Loci can restore (docs/export-format.md)."""
