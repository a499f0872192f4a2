from __future__ import annotations


class PeerFailed(Exception):
    """A system cannot be measured; the message says why. The others can."""
