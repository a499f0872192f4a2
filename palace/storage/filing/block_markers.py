"""The markers of a context block: its first and last line, and the seal that shows Loci wrote it.

The seal is a keyed digest. Text that only looks like a block has no valid one. Whitespace does
not count: programs indent, wrap and strip what they pass on.
"""

from __future__ import annotations

import re
import unicodedata

from django.utils.crypto import constant_time_compare, salted_hmac

BLOCK_START = "<memory_context>\nRecalled by Loci from earlier conversations, best match first."
BLOCK_END = "</memory_context>"
SEAL_LENGTH = 12  # Hex digits: 48 bits, which nobody can try offline.
# A tokenizer makes at most one token of each digit; `count_tokens` adds a quarter.
SEAL_TOKENS = 15
_MARK = "Seal: "
_SALT = "palace.recall.seal"  # Of blocks that agents hold already: it stays as it is.
UNSEALED = f"{_MARK}{'0' * SEAL_LENGTH}"
SEALED = re.compile(rf"{_MARK}([0-9a-f]{{{SEAL_LENGTH}}})(?![0-9a-f])")
# The seal stands in the third line of a block, so it is found within so many characters.
_HEAD_CHARS = 400


def sealed(block: str) -> str:
    """The block with its seal in place of the one it has, or of `UNSEALED`."""
    found = SEALED.search(block, 0, _HEAD_CHARS)
    if found is None:
        return block
    return f"{block[: found.start(1)]}{_digest(block, found)}{block[found.end(1) :]}"


def is_sealed(block: str) -> bool:
    """Whether Loci wrote exactly this block, but for whitespace."""
    found = SEALED.search(block, 0, _HEAD_CHARS)
    return found is not None and constant_time_compare(found[1], _digest(block, found))


def _digest(block: str, seal: re.Match[str]) -> str:
    rest = block[: seal.start(1)] + block[seal.end(1) :]
    words = "".join(unicodedata.normalize("NFC", rest).split())
    mac = salted_hmac(_SALT, words.encode("utf-8", "surrogatepass"), algorithm="sha256")
    return mac.hexdigest()[:SEAL_LENGTH]
