"""Audit: checks that prove a palace whole. They read only."""
