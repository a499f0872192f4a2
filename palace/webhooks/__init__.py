"""Webhooks: an owner's own programs are told what happens in the palaces."""
