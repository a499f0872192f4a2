"""Encryption of a backup file: scrypt for the key, AES-256-GCM in chunks.

The file is a header and then chunks. The header has the bytes `LOCIENC1`, log2 of scrypt's N, r
and p (one byte each), a salt (16 bytes) and the first 7 bytes of every nonce. Each chunk is up to
64 KiB of content with GCM's tag of 16 bytes behind it. The nonce of a chunk is the header's 7
bytes, the chunk's number from 0 (4 bytes, highest first) and one byte that is 1 for the last chunk
and else 0; the header is authenticated with each chunk. So chunks cannot be reordered, left out,
added or cut off at the end without being noticed (the STREAM construction: Hoang, Reyhanitabar,
Rogaway and Vizár, 2015).
"""

from __future__ import annotations

import os
import struct
from typing import IO

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from config.backup.tools import BackupError

MAGIC = b"LOCIENC1"
CHUNK = 64 * 2**10
TAG = 16
# N is 2^15: 32 MB of memory for each guess at the passphrase.
LOG_N, R, P = 15, 8, 1
# More than this would let a file ask for all of the memory.
MOST_LOG_N, MOST_R, MOST_P = 20, 16, 4

_HEADER = struct.Struct(">8sBBB16s7s")
_NONCE = struct.Struct(">7sIB")
DAMAGED = "The backup is damaged, or cut off: part {part} does not fit. Use another backup."
WRONG = "The passphrase is not the one this backup was encrypted with, or its file is damaged."


class EncryptingFile:
    """A writable file that encrypts what is written; `finish` writes the last chunk."""

    def __init__(self, out: IO[bytes], passphrase: str) -> None:
        salt, self._prefix = os.urandom(16), os.urandom(7)
        self._header = _HEADER.pack(MAGIC, LOG_N, R, P, salt, self._prefix)
        self._cipher = AESGCM(_key(passphrase, salt, LOG_N, R, P))
        self._out, self._part, self._waiting = out, 0, bytearray()
        out.write(self._header)

    def write(self, data: bytes) -> int:
        self._waiting += data
        # One chunk waits until it is known whether it is the last.
        while len(self._waiting) > CHUNK:
            self._write_chunk(bytes(self._waiting[:CHUNK]), last=False)
            del self._waiting[:CHUNK]
        return len(data)

    def flush(self) -> None:
        self._out.flush()

    def finish(self) -> None:
        self._write_chunk(bytes(self._waiting), last=True)

    def _write_chunk(self, content: bytes, *, last: bool) -> None:
        nonce = _NONCE.pack(self._prefix, self._part, last)
        self._out.write(self._cipher.encrypt(nonce, content, self._header))
        self._part += 1


def is_encrypted(file: IO[bytes]) -> bool:
    """Whether the file begins as `EncryptingFile` writes it; its position stays."""
    start = file.tell()
    found = file.read(len(MAGIC))
    file.seek(start)
    return found == MAGIC


def decrypt(file: IO[bytes], out: IO[bytes], passphrase: str) -> None:
    """Write the content of an encrypted file. If it raises, discard what was written.

    Raises:
        BackupError: The passphrase is wrong, or the file is not whole.
    """
    header = file.read(_HEADER.size)
    if len(header) < _HEADER.size:
        raise BackupError(DAMAGED.format(part=0))
    _, log_n, r, p, salt, prefix = _HEADER.unpack(header)
    if not (0 < log_n <= MOST_LOG_N and 0 < r <= MOST_R and 0 < p <= MOST_P):
        raise BackupError(DAMAGED.format(part=0))
    cipher = AESGCM(_key(passphrase, salt, log_n, r, p))
    part, chunk = 0, file.read(CHUNK + TAG)
    while True:
        following = file.read(CHUNK + TAG)
        try:
            nonce = _NONCE.pack(prefix, part, not following)
            out.write(cipher.decrypt(nonce, chunk, header))
        except (InvalidTag, ValueError):
            raise BackupError(DAMAGED.format(part=part) if part else WRONG) from None
        if not following:
            return
        part, chunk = part + 1, following


def _key(passphrase: str, salt: bytes, log_n: int, r: int, p: int) -> bytes:
    return Scrypt(salt=salt, length=32, n=2**log_n, r=r, p=p).derive(passphrase.encode())
