"""Accounts, sign-in, settings, API keys, and the health of background work."""
