"""Export a palace as a zip, which Loci can restore (docs/export-format.md).

`stream` generates it, `download` sends it.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import zipfile
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, cast

from django.conf import settings
from django.core.handlers.asgi import ASGIRequest
from django.db import connection, transaction
from django.http import HttpRequest, StreamingHttpResponse
from django.utils import timezone

from isolation import row_access
from language.slugs import slug_of
from palace.models import Drawer, DrawerQuerySet, Palace, Room, access_to
from palace.transfer import export_records
from palace.transfer.export_records import CHUNK, LONG_CHUNK
from palace.transfer.importers.loci import DATA, FILES, FORMAT, MANIFEST, PALACE, VERSION, file_of

MEDIA_TYPE = "application/zip"

# Each uses a database connection for the duration of the download.
_AT_ONCE = asyncio.Semaphore(4)
# Characters of the title in a file name.
NAME_LENGTH = 60
READ_ME = f"""\
# A Loci palace

Everything that Loci remembers, as it was on the day of this export.

- `rooms/`: the conversations, one page each, to read. What is in the trash is not among them.
- `data/`: the same and all that was made of it, for programs: JSON, one object a line.
- `manifest.json`: the format's version, how much there is of everything, and a checksum of each
  file.

Loci takes it back, by **Import** in the menu of your account or `{settings.IMPORT}`: an empty
palace becomes what this one was, and into any other come the messages, word for word. No key and no
password is in it.
It is not encrypted: keep it as you would keep a diary.
"""
# The chunk size in bytes.
PIECE_BYTES = 1 << 16
Records = Callable[[Palace], Iterator[export_records.Record]]
READERS: dict[str, Records] = {
    "wings": export_records.wings,
    "entities": export_records.entities,
    "rooms": export_records.rooms,
    "closets": export_records.closets,
    "drawers": export_records.drawers,
    "facts": export_records.facts,
    "fact_events": export_records.fact_events,
    "episodes": export_records.episodes,
    "activities": export_records.activities,
}


def stream(palace: Palace) -> Iterator[bytes]:
    """Yield the zip as it is generated: a consistent snapshot of the palace.

    Memory use is constant. Close the iterator if it is not exhausted.
    """
    archive = Archive()
    with _one_moment():
        yield from archive.add("README.md", READ_ME.splitlines())
        yield from archive.add(PALACE, [as_line(export_records.palace_record(palace))])
        yield from archive.add(
            f"{DATA}settings.json", [as_line(export_records.settings_record(palace))]
        )
        for name in FILES:
            yield from archive.add(file_of(name), map(as_line, READERS[name](palace)))
        for name, lines in pages(palace):
            yield from archive.add(name, lines)
    yield from archive.add(MANIFEST, _manifest(palace, archive))
    yield from archive.close()


def file_name() -> str:
    """The download's file name: only the date, nothing personal."""
    return f"loci-palace-{timezone.now():%Y-%m-%d}.zip"


def _manifest(palace: Palace, archive: Archive) -> list[str]:
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "exported_at": timezone.now().isoformat(),
        "palace": str(palace.uuid),
        "counts": {name: archive.members[file_of(name)]["lines"] for name in FILES},
        "files": archive.members,
    }
    return json.dumps(manifest, indent=1, ensure_ascii=False).splitlines()


@contextmanager
def _one_moment() -> Iterator[None]:
    """A snapshot transaction, so that no fact refers to a missing message."""
    is_outermost = not connection.in_atomic_block
    with transaction.atomic():
        if is_outermost:
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield


class Archive:
    """
    Attributes:
        members: By name, each member's SHA-256, bytes and lines.
    """

    def __init__(self) -> None:
        self.members: dict[str, dict[str, Any]] = {}
        self._pipe = _Pipe()
        self._zip = zipfile.ZipFile(self._pipe, "w", zipfile.ZIP_DEFLATED)
        self._now = timezone.now().timetuple()[:6]

    def add(self, name: str, lines: Iterable[str]) -> Iterator[bytes]:
        """Write a member line by line, yielding the zip's new bytes."""
        info = zipfile.ZipInfo(name, self._now)
        info.compress_type = zipfile.ZIP_DEFLATED
        info.external_attr = 0o600 << 16
        digest, size, count = hashlib.sha256(), 0, 0
        # The size is unknown when the header is written.
        with self._zip.open(info, "w", force_zip64=True) as member:
            for line in lines:
                data = line.encode() + b"\n"
                member.write(data)
                digest.update(data)
                size, count = size + len(data), count + 1
                yield from self._pipe.taken(PIECE_BYTES)
        self.members[name] = {"bytes": size, "lines": count, "sha256": digest.hexdigest()}
        yield from self._pipe.taken(PIECE_BYTES)

    def close(self) -> Iterator[bytes]:
        self._zip.close()
        yield from self._pipe.taken(1)


class _Pipe:
    """An unseekable file that `ZipFile` writes to."""

    def __init__(self) -> None:
        self._written = bytearray()

    def write(self, data: bytes) -> int:
        self._written += data
        return len(data)

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass

    def taken(self, least: int) -> Iterator[bytes]:
        """The bytes written since, once there are enough."""
        if len(self._written) >= least:
            data = bytes(self._written)
            self._written.clear()
            yield data


def as_line(record: object) -> str:
    return json.dumps(record, ensure_ascii=False)


def pages(palace: Palace) -> Iterator[tuple[str, Iterator[str]]]:
    """(file name, lines) of each non-empty room."""
    rooms = Room.objects.within(palace).select_related("wing").order_by("number")
    for room in rooms.iterator(CHUNK):
        drawers = Drawer.objects.within(palace).kept().filter(room=room)
        if drawers.exists():
            yield _name(room), _lines(room, drawers.with_place().order_by("position", "pk"))


def _name(room: Room) -> str:
    return f"rooms/R-{room.number:04}-{slug_of(room.title)[:NAME_LENGTH].strip('-')}.md"


def _lines(room: Room, drawers: DrawerQuerySet) -> Iterator[str]:
    yield f"# {room.title}"
    yield ""
    yield f"{room.wing.name} · {_days(room)} · {room.source}"
    for drawer in drawers.iterator(LONG_CHUNK):
        yield ""
        yield f"## {drawer.speaker or drawer.role} · {drawer.said_at:%Y-%m-%d %H:%M} UTC"
        yield f"`{drawer.pointer}`"
        yield ""
        yield drawer.text


def _days(room: Room) -> str:
    first, last = f"{room.started_at:%Y-%m-%d}", f"{room.ended_at:%Y-%m-%d}"
    return first if first == last else f"{first} to {last}"


def download(request: HttpRequest, palace: Palace) -> StreamingHttpResponse:
    """The zip as an attachment. Generation stops when the client disconnects."""
    # Django would collect a sync iterator completely under ASGI.
    is_async = isinstance(request, ASGIRequest)
    # The response goes on after the request and its access have ended.
    made = row_access.iterate_with(cast(Generator[bytes], stream(palace)), access_to(palace))
    response = StreamingHttpResponse(_pieces(made) if is_async else made, content_type=MEDIA_TYPE)
    response.headers["Content-Disposition"] = f'attachment; filename="{file_name()}"'
    response.headers["Cache-Control"] = "no-store"
    response.headers["X-Accel-Buffering"] = "no"  # Some proxies buffer whole responses.
    return response


async def _pieces(made: Generator[bytes]) -> AsyncIterator[bytes]:
    """One thread generates everything: database cursors belong to its connection."""
    async with _AT_ONCE:
        thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="export")
        loop = asyncio.get_running_loop()
        try:
            while piece := await loop.run_in_executor(thread, next, made, b""):
                yield piece
        finally:
            # Do not wait: the client may have disconnected.
            thread.submit(_close, made)
            thread.shutdown(wait=False)


def _close(made: Generator[bytes]) -> None:
    made.close()
    connection.close()
