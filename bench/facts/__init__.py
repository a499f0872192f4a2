"""Labelled scenarios for facts: what must be held at the end, what no longer, and nothing else."""
