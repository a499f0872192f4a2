"""`manage.py import_chats` in a real terminal: its question, its bar, and Ctrl-C."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.auth import get_user_model

from palace.models import Drawer, ImportJob, Palace
from palace.models.concurrency import held_if_free
from palace.transfer import import_jobs
from palace.transfer.export import stream
from tests.transfer.importers.exports import plain, write_lines
from tests.transfer.palaces import furnished
from tests.transfer.processes import environment

pytestmark = pytest.mark.django_db(transaction=True)

CTRL_C = b"\x03"
CTRL_D = b"\x04"
# How long somebody waits before pressing Ctrl-C again.
REPEAT_S = 5
QUESTION = b"Import this? [Y/n] "
# Only a session's controlling terminal turns Ctrl-C into a signal.
AT_THE_TERMINAL = """
import fcntl, os, signal, sys, termios
# Whatever runs the tests in the background may have had it ignored.
signal.signal(signal.SIGINT, signal.SIG_DFL)
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""


@pytest.fixture
def owner():
    return get_user_model().objects.create_superuser("owner", "owner@example.org", "a-password")


@pytest.fixture
def export(tmp_path):
    lines = [
        plain(*[f"The ferry number {n}.{m} leaves." for m in range(8)], conversation_id=f"p{n}")
        for n in range(80)
    ]
    return write_lines(tmp_path / "talks.jsonl", lines)


def in_terminal(export, *exchange):
    """Run the command; for each (what to wait for, keys) press the keys. → (status, screen)."""
    terminal, its_end = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            AT_THE_TERMINAL,
            sys.executable,
            "manage.py",
            "import_chats",
            export,
        ],
        cwd=settings.BASE_DIR,
        env=environment(),
        stdin=its_end,
        stdout=its_end,
        stderr=its_end,
        start_new_session=True,
    )
    os.close(its_end)
    screen = pressed = b""
    waiting = list(exchange)
    # Reading from a terminal that nobody writes to any more is an error.
    with contextlib.suppress(OSError):
        while True:
            # Python loses a Ctrl-C that comes between its question and its waiting for an answer.
            if pressed == CTRL_C and not select.select([terminal], [], [], REPEAT_S)[0]:
                os.write(terminal, pressed)
            if not (data := os.read(terminal, 65536)):
                break
            screen += data
            if waiting and waiting[0][0] in screen:
                pressed = waiting.pop(0)[1]
                os.write(terminal, pressed)
    os.close(terminal)
    return process.wait(), screen.decode()


@pytest.mark.exhaustive
@pytest.mark.parametrize("answer", [b"n\n", CTRL_C, CTRL_D])
def test_who_declines_has_nothing_imported(owner, export, answer):
    status, screen = in_terminal(export, (QUESTION, answer))
    assert status == 0
    assert "Nothing was imported." in screen
    assert "Traceback" not in screen
    assert not Drawer.objects.exists()
    assert not ImportJob.objects.exists()


@pytest.mark.exhaustive
def test_after_ctrl_c_the_same_command_goes_on(owner, export):
    status, screen = in_terminal(export, (QUESTION, b"\n"), (b"message/s]", CTRL_C))
    assert status == 130
    assert "of 80 conversations are filed. The same command goes on from there." in screen
    assert "Traceback" not in screen
    job = ImportJob.objects.get()
    assert job.status == ImportJob.Status.READY
    assert job.messages_stored == Drawer.objects.count() < 640
    status, screen = in_terminal(export, *([] if job.spool_offset else [(QUESTION, b"y\n")]))
    assert status == 0
    assert "100%" in screen
    job.refresh_from_db()
    assert (job.status, job.messages_stored, job.messages_present) == ("done", 640, 0)
    assert Drawer.objects.count() == 640


@pytest.mark.exhaustive
def test_ctrl_c_leaves_what_another_command_imports(owner, export):
    job = import_jobs.preview(Palace.objects.own(owner), Path(export))
    import_jobs.start(job)
    with held_if_free(f"command of import {job.pk}") as ours:
        assert ours
        status, screen = in_terminal(export, (b"message/s]", CTRL_C))
    assert status == 130
    assert "another process goes on with this import" in screen
    job.refresh_from_db()
    assert (job.status, job.spool_offset) == (ImportJob.Status.RUNNING, 0)
    status, screen = in_terminal(export)
    assert status == 0, "The other one has died, so this one takes over."
    assert Drawer.objects.count() == 640


@pytest.mark.exhaustive
def test_a_restore_shows_its_phases_and_rows(owner, alice, palace, tmp_path):
    furnished(palace)
    path = tmp_path / "palace.zip"
    path.write_bytes(b"".join(stream(palace)))
    status, screen = in_terminal(path, (QUESTION, b"y\n"))
    assert status == 0
    for phase in ("Writing records", "Indexing messages", "Embedding facts and episodes"):
        assert phase in screen
    assert "row/s]" in screen
    assert (
        Drawer.objects.filter(palace__owner=owner).count() == Drawer.objects.within(palace).count()
    )
