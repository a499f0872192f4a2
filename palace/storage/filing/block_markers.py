"""Markers of a context block: its first and last line, and the seal that proves Loci wrote it.

The seal is a keyed digest; text that only looks like a block has no valid seal. The digest ignores
whitespace, because programs indent, wrap and strip text.
"""

from __future__ import annotations

import re
import unicodedata

from django.utils.crypto import constant_time_compare, salted_hmac

BLOCK_START = "<memory_context>\nRecalled by Loci from earlier conversations, best match first."
BLOCK_END = "</memory_context>"
SEAL_LENGTH = 12  # Hex digits: 48 bits, which cannot be brute-forced without the key.
# At most one token per digit; `count_tokens` adds a quarter.
SEAL_TOKENS = 15
_MARK = "Seal: "
_SALT = "palace.recall.seal"  # Existing blocks depend on it: do not change it.
UNSEALED = f"{_MARK}{'0' * SEAL_LENGTH}"
SEALED = re.compile(rf"{_MARK}([0-9a-f]{{{SEAL_LENGTH}}})(?![0-9a-f])")
# The seal is in the third line of a block, within this many characters.
_HEAD_CHARS = 400


def sealed(block: str) -> str:
    """The block with its seal; replaces an existing seal or `UNSEALED`."""
    found = SEALED.search(block, 0, _HEAD_CHARS)
    if found is None:
        return block
    return f"{block[: found.start(1)]}{_digest(block, found)}{block[found.end(1) :]}"


def is_sealed(block: str) -> bool:
    """Whether Loci wrote exactly this block, ignoring whitespace."""
    found = SEALED.search(block, 0, _HEAD_CHARS)
    return found is not None and constant_time_compare(found[1], _digest(block, found))


def _digest(block: str, seal: re.Match[str]) -> str:
    rest = block[: seal.start(1)] + block[seal.end(1) :]
    words = "".join(unicodedata.normalize("NFC", rest).split())
    mac = salted_hmac(_SALT, words.encode("utf-8", "surrogatepass"), algorithm="sha256")
    return mac.hexdigest()[:SEAL_LENGTH]
