"""Statements of lasting things in English text, by rules."""
