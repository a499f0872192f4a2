"""The role of this process, set before the settings are loaded."""

from __future__ import annotations

# A web process: many threads share a few connections.
serves_web = False
