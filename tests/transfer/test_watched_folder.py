"""`import_chats --watch`: what is put into a folder is imported as it comes, each once."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from functools import partial

import pytest
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command
from django.db import connection

from config.management.commands import import_chats
from config.management.watched_folder import WatchedFolder
from palace.models import Drawer, ImportJob
from palace.models.concurrency import held_if_free
from tests.config.conftest import as_from_a_shell
from tests.polling import until, wait_until
from tests.transfer.importers.exports import plain, write_lines
from tests.transfer.processes import environment


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "exports"
    made.mkdir()
    return made


@pytest.fixture
def owner(db):
    return get_user_model().objects.create_superuser("owner")


def put(folder, name, text="words", at=1):
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    os.utime(path, (at, at))
    return path


def test_a_file_is_complete_once_it_stays_the_same(folder):
    watched = WatchedFolder(folder)
    late, early = put(folder, "late.txt", at=2), put(folder, "below/early.txt", at=1)
    assert watched.complete() == []
    assert watched.complete() == [early, late]
    watched.done(early)
    put(folder, "late.txt", "more words", at=3)
    assert watched.complete() == [], "It is still being written."
    assert watched.complete() == [late]
    watched.done(late)
    assert watched.complete() == []
    put(folder, "below/early.txt", "changed", at=4)
    assert (watched.complete(), watched.complete()) == ([], [early])


def test_what_is_no_file_of_the_users_is_ignored(folder):
    watched = WatchedFolder(folder)
    for name in (".hidden", ".git/config.txt", "export.zip.crdownload", "export.PART"):
        put(folder, name)
    put(folder, "empty.txt", "")
    (folder / "link.txt").symlink_to(put(folder.parent, "elsewhere.txt"))
    assert (watched.complete(), watched.complete()) == ([], [])


def test_the_folder_of_loci_itself_is_ignored(folder):
    (folder.parent / "by another name").symlink_to(folder)
    watched = WatchedFolder(folder.parent / "by another name", left_out=folder / "loci")
    put(folder, "loci/postgres.conf")
    talk = put(folder.parent / "by another name", "talk.txt")
    assert (watched.complete(), watched.complete()) == ([], [talk])


def test_a_file_that_comes_again_is_looked_at_again(folder):
    watched = WatchedFolder(folder)
    path = put(folder, "a.txt")
    watched.complete()
    assert watched.complete() == [path]
    watched.done(path)
    path.unlink()
    assert watched.complete() == []
    put(folder, "a.txt")
    watched.complete()
    assert watched.complete() == [path]


def too_deep(folder):
    """Folders in folders, whose path is at last longer than the system reads, also for root."""
    place = os.open(folder, os.O_RDONLY)
    for _ in range(20):
        os.mkdir("d" * 250, dir_fd=place)
        outer, place = place, os.open("d" * 250, os.O_RDONLY, dir_fd=place)
        os.close(outer)
    os.close(place)
    return folder / ("d" * 250)


def test_a_folder_that_cannot_be_read_is_named_once(folder):
    watched, deep = WatchedFolder(folder), too_deep(folder)
    path = put(folder, "a.txt")
    watched.complete()
    (refused,) = watched.newly_refused()
    assert refused.startswith(f"{deep}/")
    assert refused.endswith(" cannot be read: File name too long")
    assert watched.complete() == [path]
    assert watched.newly_refused() == []
    deep.rename(folder.parent / "away")
    watched.complete()
    assert watched.newly_refused() == []
    (folder.parent / "away").rename(deep)
    watched.complete()
    assert watched.newly_refused() == [refused]


@pytest.mark.skipif(os.geteuid() == 0, reason="Root may read everywhere.")
@pytest.mark.parametrize("mode", [0, 0o400])
def test_a_folder_without_permission_stops_no_other(folder, mode):
    path, closed = put(folder, "a.txt"), put(folder, "closed/b.txt").parent
    closed.chmod(mode)
    watched = WatchedFolder(folder)
    watched.complete()
    (refused,) = watched.newly_refused()
    found = watched.complete()
    closed.chmod(0o700)
    assert refused.startswith(str(closed))
    assert refused.endswith("cannot be read: Permission denied")
    assert found == [path]


@pytest.mark.django_db(transaction=True)
def test_the_command_names_what_it_cannot_read_and_imports_the_rest(folder, owner, monkeypatch):
    monkeypatch.setattr(import_chats, "LOOK_EVERY_S", 0.01)
    too_deep(folder)
    write_lines(folder / "first.jsonl", [plain("One.", conversation_id="a")])
    errors = io.StringIO()
    arrives = partial(until, ImportJob.objects.filter(status="done").exists)
    with somebody_at_the_keyboard(arrives):
        call_command("import_chats", str(folder), "--watch", stdout=io.StringIO(), stderr=errors)
    assert errors.getvalue().count("cannot be read: ") == 1


def test_it_takes_a_folder(db, tmp_path):
    with pytest.raises(CommandError, match="--watch takes a folder"):
        call_command("import_chats", str(tmp_path / "none"), "--watch")


def texts():
    return sorted(Drawer.objects.values_list("text", flat=True))


@contextmanager
def somebody_at_the_keyboard(does):
    """In a thread: does something, then presses Ctrl-C."""

    def act():
        try:
            does()
        finally:
            connection.close()
            os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=act)
    thread.start()
    yield
    thread.join()


@pytest.mark.django_db(transaction=True)
def test_files_are_imported_until_ctrl_c(folder, owner, monkeypatch):
    monkeypatch.setattr(import_chats, "LOOK_EVERY_S", 0.01)
    write_lines(folder / "first.jsonl", [plain("One.", conversation_id="a")])
    put(folder, "broken.json", "{ nonsense")

    def add_another():
        until(lambda: "= stored" in log.read_text())
        assert texts() == ["One."]
        write_lines(folder / "second.jsonl", [plain("Two.", conversation_id="b")])
        until(lambda: ImportJob.objects.filter(status="done").count() == 2)
        (folder / "copy.jsonl").write_text((folder / "first.jsonl").read_text() + "\n")
        until(lambda: "has nothing new" in errors.getvalue())

    log, errors = folder.parent / "log", io.StringIO()
    with log.open("w") as out, somebody_at_the_keyboard(add_another):
        call_command("import_chats", str(folder), "--watch", stdout=out, stderr=errors)
    assert texts() == ["One.", "Two."]
    assert ImportJob.objects.count() == 2
    assert log.read_text().count("= stored") == 2
    assert errors.getvalue().count("broken.json was not imported: ") == 1
    assert "Stopped watching." in errors.getvalue()


@pytest.mark.django_db(transaction=True)
def test_a_folder_that_goes_away_is_named_and_awaited(folder, owner, monkeypatch):
    monkeypatch.setattr(import_chats, "LOOK_EVERY_S", 0.01)
    write_lines(folder / "first.jsonl", [plain("One.", conversation_id="a")])
    elsewhere, errors = folder.with_name("unplugged"), io.StringIO()

    def unplug():
        until(lambda: ImportJob.objects.filter(status="done").exists())
        folder.rename(elsewhere)
        until(lambda: f"{folder} is gone" in errors.getvalue())
        write_lines(elsewhere / "second.jsonl", [plain("Two.", conversation_id="b")])
        elsewhere.rename(folder)
        until(lambda: ImportJob.objects.filter(status="done").count() == 2)

    with somebody_at_the_keyboard(unplug):
        call_command("import_chats", str(folder), "--watch", stdout=io.StringIO(), stderr=errors)
    assert texts() == ["One.", "Two."]
    assert errors.getvalue().count("is gone") == errors.getvalue().count("is back") == 1


@pytest.mark.django_db(transaction=True)
def test_a_file_that_is_removed_before_it_is_read_stops_nothing(folder, owner, monkeypatch):
    monkeypatch.setattr(import_chats, "LOOK_EVERY_S", 0.01)
    first, errors = folder / "first.jsonl", io.StringIO()
    write_lines(first, [plain("One.", conversation_id="a")])
    write_lines(folder / "second.jsonl", [plain("Two.", conversation_id="b")])
    os.utime(first, (1, 1))
    complete = WatchedFolder.complete

    def complete_and_gone(watched):
        found = complete(watched)
        if first in found:
            first.unlink()
        return found

    monkeypatch.setattr(WatchedFolder, "complete", complete_and_gone)
    arrives = partial(until, ImportJob.objects.filter(status="done").exists)
    with somebody_at_the_keyboard(arrives):
        call_command("import_chats", str(folder), "--watch", stdout=io.StringIO(), stderr=errors)
    assert texts() == ["Two."]
    assert "first.jsonl was not imported: " in errors.getvalue()


@pytest.mark.django_db(transaction=True)
def test_a_folder_is_watched_once_for_a_palace(folder, owner, alice, monkeypatch):
    monkeypatch.setattr(import_chats, "LOOK_EVERY_S", 0.01)
    write_lines(folder / "first.jsonl", [plain("One.", conversation_id="a")])
    same = folder.parent / "same"
    same.symlink_to(folder)
    refused = []

    def watch_too():
        until(lambda: texts() == ["One."])
        with pytest.raises(CommandError, match="is being watched already") as error:
            call_command("import_chats", str(same), "--watch", stderr=io.StringIO())
        refused.append(error)
        # For another palace it may be, were this not a thread, which signals do not reach.
        with pytest.raises(ValueError, match="signal only works in main thread"):
            call_command("import_chats", str(folder), "--watch", "--user", "alice")

    errors = io.StringIO()
    with somebody_at_the_keyboard(watch_too):
        call_command("import_chats", str(folder), "--watch", stdout=io.StringIO(), stderr=errors)
    assert refused
    assert "Stopped watching." in errors.getvalue()
    again = io.StringIO()
    with somebody_at_the_keyboard(lambda: until(lambda: again.getvalue())):
        call_command("import_chats", str(folder), "--watch", stderr=again)
    assert "Stopped watching." in again.getvalue()


@pytest.mark.django_db(transaction=True)
def test_a_patient_watch_waits_and_takes_over(folder, palace, monkeypatch):
    monkeypatch.setattr(import_chats, "LOOK_EVERY_S", 0.01)
    write_lines(folder / "first.jsonl", [plain("One.", conversation_id="a")])
    name = f"watch for palace {palace.pk} {WatchedFolder(folder).identity()}"
    errors, is_watched = io.StringIO(), threading.Event()
    found_meanwhile = []

    def watch_first():
        try:
            with held_if_free(name) as ours:
                assert ours
                is_watched.set()
                until(lambda: "Another command watches" in errors.getvalue())
                found_meanwhile.append(texts())
        finally:
            connection.close()

    other = threading.Thread(target=watch_first)
    other.start()
    assert is_watched.wait(60)
    with somebody_at_the_keyboard(lambda: until(lambda: texts() == ["One."] and none_runs())):
        arguments = [str(folder), "--watch", "--patient", "--user", "alice"]
        call_command("import_chats", *arguments, stdout=io.StringIO(), stderr=errors)
    other.join()
    assert found_meanwhile == [[]]
    assert errors.getvalue().count("Another command watches") == 1
    assert "Stopped watching." in errors.getvalue()


def none_runs():
    return not ImportJob.objects.filter(status=ImportJob.Status.RUNNING).exists()


def start_watching(folder):
    return subprocess.Popen(
        [sys.executable, "manage.py", "import_chats", str(folder), "--watch", "--json"],
        cwd=settings.BASE_DIR,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=as_from_a_shell,
    )


@contextmanager
def watching(folder):
    """The command while it watches; then Ctrl-C, and its standard error."""
    process = start_watching(folder)
    said = []
    try:
        yield said
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
        said += [out, errors]
    finally:
        process.kill()
        process.communicate()


@pytest.mark.exhaustive
@pytest.mark.django_db(transaction=True)
def test_started_again_it_imports_nothing_twice(folder, owner):
    write_lines(folder / "first.jsonl", [plain("One.", conversation_id="a")])
    (folder / "broken.json").write_text("{ nonsense")
    with watching(folder) as said:
        until(lambda: texts() == ["One."])
        write_lines(folder / "second.jsonl", [plain("Two.", conversation_id="b")])
        until(lambda: texts() == ["One.", "Two."])
        write_lines(folder / "second.jsonl", [plain("Two.", "Three.", conversation_id="b")])
        until(lambda: texts() == ["One.", "Three.", "Two."])
        until(lambda: not ImportJob.objects.exclude(status="done").exists())
    out, errors = said
    assert len(out.splitlines()) == 3, "A receipt each."
    assert errors.count("broken.json was not imported: ") == 1
    assert "Stopped watching." in errors
    assert "Traceback" not in errors
    with watching(folder) as said:
        write_lines(folder / "last.jsonl", [plain("Four.", conversation_id="c")])
        assert wait_until(lambda: "Four." in texts())
        until(lambda: not ImportJob.objects.exclude(status="done").exists())
    assert len(said[0].splitlines()) == 1
    assert texts() == ["Four.", "One.", "Three.", "Two."]
    assert ImportJob.objects.count() == 4


@pytest.mark.exhaustive
@pytest.mark.django_db(transaction=True)
def test_killed_amid_a_file_it_goes_on_there(folder, owner):
    conversations = [
        plain(*[f"Message {m} of {n}." for m in range(6)], conversation_id=f"p{n}")
        for n in range(60)
    ]
    write_lines(folder / "large.jsonl", conversations)
    expected = sorted(f"Message {m} of {n}." for m in range(6) for n in range(60))
    process = start_watching(folder)
    until(Drawer.objects.exists)
    process.kill()
    process.communicate()
    before = texts()
    assert 0 < len(before) < len(expected), "It was killed amid the file."
    assert ImportJob.objects.get().status == ImportJob.Status.RUNNING
    with watching(folder) as said:
        until(lambda: not ImportJob.objects.exclude(status="done").exists())
    assert texts() == expected
    assert not Drawer.objects.unmined().exists()
    [receipt] = [json.loads(line)["receipt"] for line in said[0].splitlines()]
    assert (receipt["in"], receipt["stored"], receipt["present"]) == (360, 360, 0)
    assert ImportJob.objects.count() == 1
