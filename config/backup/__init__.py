"""Backups: their file, and PostgreSQL's tools, which write and restore it.

The file is a zip with the database's dump, a few files and, last, a manifest. `manifest.json` has
the size and SHA-256 of everything before it. With a passphrase the whole zip is encrypted: scrypt
for the key, AES-256-GCM in chunks.

The encrypted file is a header and then chunks. The header has the bytes `LOCIENC1`, log2 of
scrypt's N, r and p (one byte each), a salt (16 bytes) and the first 7 bytes of every nonce. Each
chunk is up to 64 KiB of content with GCM's tag of 16 bytes behind it. The nonce of a chunk is the
header's 7 bytes, the chunk's number from 0 (4 bytes, highest first) and one byte that is 1 for the
last chunk and else 0; the header is authenticated with each chunk. So chunks cannot be reordered,
left out, added or cut off at the end without being noticed (the STREAM construction: Hoang,
Reyhanitabar, Rogaway and Vizár, 2015).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import struct
import subprocess
import tempfile
import zipfile
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

import psycopg
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt
from psycopg.conninfo import make_conninfo

from config.embedded import ServiceError, postgres_bin

_PIECE = 2**20


class BackupError(Exception):
    """The message says what is wrong and what to do; nothing was changed."""


@dataclass(frozen=True, slots=True)
class Server:
    """A database's address and password, for PostgreSQL's programs and psycopg.

    Attributes:
        address: Without the password, because arguments are visible to other processes.
        environment: With the password, where there is one.
    """

    address: str
    environment: Mapping[str, str]

    def connect(self) -> psycopg.Connection[Any]:
        password = self.environment.get("PGPASSWORD")
        return psycopg.connect(self.address, password=password)


def server_of(database: Mapping[str, Any]) -> Server:
    """
    Args:
        database: An entry of Django's `DATABASES`.
    """
    options = database.get("OPTIONS", {})
    transport = {name: value for name, value in options.items() if name.startswith(("ssl", "gss"))}
    address = make_conninfo(
        host=database["HOST"] or None,
        port=database["PORT"] or None,
        user=database["USER"] or None,
        dbname=database["NAME"],
        **transport,
    )
    password = {"PGPASSWORD": database["PASSWORD"]} if database["PASSWORD"] else {}
    return Server(address, {**os.environ, **password})


def find_tool(name: str, server_major: int) -> str:
    """The bundled program, or the one on PATH, that is not older than the server.

    Raises:
        BackupError: There is none.
    """
    found = [path for path in (_bundled(name), shutil.which(name)) if path]
    versions = {path: _major(path) for path in found}
    for path, version in versions.items():
        if version >= server_major:
            return path
    which = f"is older ({max(versions.values())})" if versions else "is missing"
    raise BackupError(
        f"{name} {which}, and the server is PostgreSQL {server_major}. Install PostgreSQL's client "
        f"programs of version {server_major} or newer (postgresql-client-{server_major})."
    )


def _bundled(name: str) -> str | None:
    try:
        path = postgres_bin() / name
    except ServiceError:
        return None
    return str(path) if path.is_file() else None


def _major(path: str) -> int:
    said = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)  # noqa: S603
    number = re.search(r"\) (\d+)", said.stdout)
    return int(number[1]) if number else 0


def output_of(command: Sequence[str], server: Server) -> Generator[bytes, None, None]:
    """The output of a program, in pieces.

    Raises:
        BackupError: It failed; with its error output.
    """
    with (
        tempfile.TemporaryFile() as said,
        subprocess.Popen(  # noqa: S603 - PostgreSQL's own, no shell.
            command, stdout=subprocess.PIPE, stderr=said, env=dict(server.environment)
        ) as program,
    ):
        out = cast(IO[bytes], program.stdout)
        try:
            while piece := out.read(_PIECE):
                yield piece
        except GeneratorExit:
            program.terminate()
            raise
        if program.wait():
            raise BackupError(failure(command, said))


def failure(command: Sequence[str], said: IO[bytes]) -> str:
    """The error output of a failed program, as a sentence."""
    said.seek(0)
    words = said.read().decode(errors="replace").strip()[-1500:]
    return f"{Path(command[0]).name} failed: {words or 'no reason given'}"


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
FORMAT, FORMAT_VERSION = "loci-backup", 1
DUMP, MANIFEST, SECRET_KEY = "database.dump", "manifest.json", "files/secret_key"
IMPORTS = "files/imports/"
_NAMES = re.compile(rf"{DUMP}|{SECRET_KEY}|{IMPORTS}[0-9a-f-]{{36}}\.jsonl")
NOT_ONE = "{name} is no backup of Loci."
ENCRYPTED = (
    "{name} is encrypted. Give its passphrase with --passphrase-file or LOCI_BACKUP_PASSPHRASE."
)


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
        # One chunk is held back: only the next one shows whether it is the last.
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


class ArchiveWriter:
    """Adds members one after the other, and at the end the manifest."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._zip = archive
        self._members: dict[str, dict[str, Any]] = {}

    def add(self, name: str, pieces: Iterable[bytes]) -> None:
        digest, size = hashlib.sha256(), 0
        with self._zip.open(name, "w", force_zip64=True) as out:
            for piece in pieces:
                out.write(piece)
                digest.update(piece)
                size += len(piece)
        self._members[name] = {"bytes": size, "sha256": digest.hexdigest()}

    def finish(self, manifest: dict[str, Any]) -> None:
        whole = {"format": FORMAT, "format_version": FORMAT_VERSION, **manifest}
        text = json.dumps({**whole, "files": self._members}, indent=1)
        self._zip.writestr(MANIFEST, text)


@contextmanager
def writing(out: IO[bytes], passphrase: str) -> Iterator[ArchiveWriter]:
    """Add members inside the block; the file is complete if the block ends without an error."""
    sealed = EncryptingFile(out, passphrase) if passphrase else None
    # The dump is compressed already.
    target = cast(IO[bytes], sealed or out)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        yield ArchiveWriter(archive)
    if sealed:
        sealed.finish()


def unpack(file: Path, folder: Path, passphrase: str) -> dict[str, Any]:
    """Unpack a backup into an empty private folder; returns its manifest.

    Raises:
        BackupError: It is no backup, it is damaged, or the passphrase is missing or wrong.
    """
    try:
        with (
            file.open("rb") as source,
            _decrypted(source, file.name, folder, passphrase) as plain,
            zipfile.ZipFile(plain) as archive,
        ):
            manifest = _manifest(archive, file.name)
            for name, entry in manifest["files"].items():
                _extract(archive, name, entry, folder)
            return manifest
    except (zipfile.BadZipFile, KeyError, EOFError, AttributeError, TypeError) as error:
        raise BackupError(NOT_ONE.format(name=file.name)) from error


@contextmanager
def _decrypted(source: IO[bytes], name: str, folder: Path, passphrase: str) -> Iterator[IO[bytes]]:
    if not is_encrypted(source):
        yield source
        return
    if not passphrase:
        raise BackupError(ENCRYPTED.format(name=name))
    with tempfile.TemporaryFile(dir=folder) as plain:
        decrypt(source, plain, passphrase)
        plain.seek(0)
        yield plain


def _manifest(archive: zipfile.ZipFile, name: str) -> dict[str, Any]:
    try:
        manifest: dict[str, Any] = json.loads(archive.read(MANIFEST))
    except ValueError:
        raise BackupError(NOT_ONE.format(name=name)) from None
    if manifest.get("format") != FORMAT:
        raise BackupError(NOT_ONE.format(name=name))
    if manifest["format_version"] > FORMAT_VERSION:
        raise BackupError(f"{name} was written by a newer Loci ({manifest['loci']}). Update first.")
    if DUMP not in manifest["files"]:
        raise BackupError(NOT_ONE.format(name=name))
    return manifest


def _extract(archive: zipfile.ZipFile, name: str, entry: dict[str, Any], folder: Path) -> None:
    if not _NAMES.fullmatch(name):
        raise BackupError(f"The backup holds {name!r}, which no Loci writes. Use another backup.")
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256()
    with archive.open(name) as source, path.open("wb") as out:
        while piece := source.read(_PIECE):
            digest.update(piece)
            out.write(piece)
    if (path.stat().st_size, digest.hexdigest()) != (entry["bytes"], entry["sha256"]):
        raise BackupError(f"The backup is damaged: {name} is not what was saved.")
