"""What this process is for, as far as the settings want to know; said before they are read."""

from __future__ import annotations

# Many requests at once, each in a thread of its own: they share a few connections.
serves_web = False
