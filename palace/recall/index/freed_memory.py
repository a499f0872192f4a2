"""Freed memory: given back to the system after a recall that needed much."""

from __future__ import annotations

import ctypes
import gc
import sys
from functools import cache
from typing import Any


def give_memory_back() -> bool:
    """Have the allocator return what is free; False where it cannot be asked to.

    By itself it keeps most of it: what lies between arrays that are still used, and all that
    other threads have freed. Takes some milliseconds.
    """
    trim = _trim()
    if trim is None:
        return False
    gc.collect()
    trim(0)
    return True


@cache
def _trim() -> Any:
    """Of the GNU C library alone."""
    return getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
