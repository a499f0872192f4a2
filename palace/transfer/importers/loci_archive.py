"""Read a Loci export, verifying each file's checksum first."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from palace.errors import BadImport
from palace.transfer.importers.conversation import as_mapping
from palace.transfer.importers.files import CHUNK, Archive
from palace.transfer.importers.loci_format import FORMAT, MANIFEST, VERSION, file_of

LARGEST_MANIFEST = 64 << 20


def is_loci(archive: Archive) -> bool:
    return file_of("drawers") in archive.members and MANIFEST in archive.members


def read_manifest(archive: Archive) -> Mapping[str, Any]:
    """
    Raises:
        BadImport: it is not one, or of a newer version.
    """
    with archive.part(MANIFEST) as part:
        content = part.stream.read(LARGEST_MANIFEST)
    try:
        manifest = as_mapping(json.loads(content))
    except (ValueError, RecursionError) as error:
        raise BadImport(
            f"{archive.name} holds no readable manifest.json; export the palace again."
        ) from error
    version = manifest.get("version")
    if manifest.get("format") != FORMAT or not isinstance(version, int):
        raise BadImport(f"{archive.name} is no Loci export: its manifest.json is another's.")
    if version > VERSION:
        raise BadImport(
            f"{archive.name} was written by a newer Loci (format {version}; this one reads up to "
            f"{VERSION}). Bring this one up to date first."
        )
    return manifest


def vouch(archive: Archive, manifest: Mapping[str, Any], name: str) -> None:
    """Verify a file's checksum against the manifest.

    Raises:
        BadImport: they differ, or the file is missing.
    """
    if name not in archive.members:
        raise BadImport(f"{archive.name} holds no {name}; export the palace again.")
    digest = hashlib.sha256()
    with archive.part(name) as part:
        while data := part.stream.read(CHUNK):
            digest.update(data)
    expected = as_mapping(as_mapping(manifest.get("files")).get(name)).get("sha256")
    if digest.hexdigest() != expected:
        raise BadImport(
            f"{name} in {archive.name} is not as it was exported: its checksum differs. "
            "Export the palace again."
        )
