"""The cache stores JSON, not pickles, which could run code of anyone who can write to Redis.

The clock imports it, which knows no models.
"""

from __future__ import annotations

import json
from typing import Any


class JsonSerializer:
    """For Django's Redis cache. Integers stay as they are, so that Redis can count with them."""

    def dumps(self, value: Any) -> int | bytes:
        return value if type(value) is int else json.dumps(value).encode()

    def loads(self, data: bytes) -> Any:
        return json.loads(data)
