"""Webhooks: notify the owner's programs of events in the palaces."""
