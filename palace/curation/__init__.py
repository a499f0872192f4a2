"""Curation: what people do to a palace by hand. Pruning it, and putting its wings in order."""
