"""Benchmarks of the production recall, and measurements of speed, filing and facts."""
