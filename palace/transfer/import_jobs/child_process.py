"""A file read by a process of its own, with a deadline.

Whoever uploads a file waits for it; everybody else is answered meanwhile, whatever is in it.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time
from pathlib import Path
from threading import BoundedSemaphore

from django.conf import settings
from django.db import connection

from palace.errors import BadImport
from palace.transfer.importers.file_reader import Places

# Files that one process of the web has read at the same time.
AT_ONCE = 2
_slots = BoundedSemaphore(AT_ONCE)
_COMMAND = [sys.executable, "-S", "-m", "palace.transfer.importers.file_reader"]


def prepare_apart(path: Path, name: str, places: Places, *, may_be_whole: bool) -> str:
    """`prepare`, elsewhere.

    Raises:
        BadImport: Whatever it raises, or it takes too long.
    """
    deadline = time.monotonic() + settings.READ_UPLOAD_S
    if not connection.in_atomic_block:
        connection.close()  # Others may need it, and this may take minutes.
    if not _slots.acquire(timeout=settings.READ_UPLOAD_S):
        raise BadImport(
            f"{name} has waited too long: other files are being read. Try again in a few minutes."
        )
    try:
        asked = {
            "path": str(path),
            "name": name,
            "spool": str(places.spool),
            "listed": str(places.listed),
            "may_be_whole": may_be_whole,
            "seconds": math.ceil(settings.READ_UPLOAD_S),
        }
        return _answer(json.dumps(asked), name, deadline - time.monotonic())
    finally:
        _slots.release()


def _answer(asked: str, name: str, seconds: float) -> str:
    try:
        done = subprocess.run(  # noqa: S603 - our own program, asked through its input.
            _COMMAND,
            input=asked,
            stdout=subprocess.PIPE,
            cwd=settings.BASE_DIR,
            text=True,
            timeout=max(seconds, 0),
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise BadImport(
            f"{name} takes longer than {settings.READ_UPLOAD_S:g} seconds to read, so nothing of "
            "it was imported. Whoever runs this Loci can import it with `manage.py import_chats`, "
            "or raise LOCI_READ_UPLOAD_S."
        ) from None
    if done.returncode:
        raise BadImport(
            f"{name} could not be read: the program that reads it stopped. It may be too large for "
            "this machine’s memory; whoever runs this Loci finds more in its log."
        )
    answer = json.loads(done.stdout)
    if "refused" in answer:
        raise BadImport(answer["refused"])
    return str(answer["source"])
