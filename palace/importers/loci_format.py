"""What a Loci export is called, and where things are in it; whoever writes or reads one agrees."""

from __future__ import annotations

FORMAT = "loci-palace"
# Readers refuse a higher one. New fields and files do not raise it; a changed meaning does.
VERSION = 1
MANIFEST = "manifest.json"
DATA = "data/"
