"""Backup and restore with PostgreSQL's own tools."""
