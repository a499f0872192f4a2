"""The backup file: a zip with the database's dump, a few files and, last, a manifest.

`manifest.json` has the size and SHA-256 of everything before it. With a passphrase the whole zip is
encrypted.
"""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from config.backup.encryption import EncryptingFile, decrypt, is_encrypted
from config.backup.tools import BackupError

FORMAT, FORMAT_VERSION = "loci-backup", 1
DUMP, MANIFEST, SECRET_KEY = "database.dump", "manifest.json", "files/secret_key"
IMPORTS = "files/imports/"
_NAMES = re.compile(rf"{DUMP}|{SECRET_KEY}|{IMPORTS}[0-9a-f-]{{36}}\.jsonl")
_PIECE = 2**20
NOT_ONE = "{name} is no backup of Loci."
ENCRYPTED = (
    "{name} is encrypted. Give its passphrase with --passphrase-file or LOCI_BACKUP_PASSPHRASE."
)


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
