"""The command `locipalace`, for people: its arguments, help and clients' configuration.

The work is done by the program's management commands; without them nothing of Django is loaded.
"""
