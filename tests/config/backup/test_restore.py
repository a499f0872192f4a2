from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import zipfile
from contextlib import contextmanager

import psycopg
import pytest
import redis
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.cache import cache
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from config.backup import find_tool, server_of, writing
from config.backup.restore import why_unfinished
from config.embedded import Layout
from palace.models import Drawer, Palace
from palace.working.ledger import Ledger, LedgerEntry
from tests.config.conftest import PROJECT, as_from_a_shell
from tests.conversations import LISBON
from tests.older_tables import migrate_back
from tests.polling import until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def backup(palace, tmp_path):
    file = tmp_path / "one.locibackup"
    call_command("backup", str(file))
    return file


def rewritten(file, **changes):
    """The backup with another manifest."""
    target = file.with_name("changed.locibackup")
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name == "manifest.json":
                data = json.dumps(json.loads(data) | changes).encode()
            new.writestr(name, data)
    return target


def restore(file, capsys, **options):
    capsys.readouterr()
    call_command("restore", str(file), **options)
    return capsys.readouterr().out


def test_what_was_lost_comes_back_to_the_byte(backup, palace, capsys):
    before = {drawer.uuid: drawer.text for drawer in Drawer.objects.all()}
    Drawer.objects.all().delete()
    get_user_model().objects.create_user("mallory")
    said = restore(backup, capsys, replace=True, yes=True)
    assert {drawer.uuid: drawer.text for drawer in Drawer.objects.all()} == before
    assert set(before.values()) == {turn.text for turn in LISBON.turns}
    assert [user.username for user in get_user_model().objects.all()] == ["alice"]
    assert f"alice ({palace.uuid}): whole; 2 drawers" in said
    assert ": 0 failed." in said
    # Keys go on where they were.
    assert Palace.objects.own(get_user_model().objects.create_user("bob")).pk > palace.pk


def test_a_database_that_holds_something_is_left_alone(backup, palace, capsys):
    for options, said in (
        ({}, "add --replace --yes"),
        ({"into_empty": True}, "add --replace --yes"),
        ({"replace": True}, "Add --yes"),
        ({"replace": True, "yes": True, "into_empty": True}, "Choose one"),
    ):
        with pytest.raises(CommandError, match=said):
            restore(backup, capsys, **options)
    assert Drawer.objects.count() == 2


def test_an_empty_one_is_filled(backup, palace, capsys):
    owner = palace.owner
    palace.delete()
    owner.delete()
    restore(backup, capsys)
    assert Drawer.objects.count() == 2


@pytest.mark.exhaustive
def test_other_programs_must_stop_first(backup, capsys):
    other = server_of(connection.settings_dict).connect()
    try:
        with pytest.raises(CommandError, match="Stop Loci first"):
            restore(backup, capsys, replace=True, yes=True)
    finally:
        other.close()


def test_one_that_is_just_leaving_is_waited_for(backup, palace):
    other = server_of(connection.settings_dict).connect()
    leaves = threading.Timer(0.3, other.close)
    leaves.start()
    call_command("restore", str(backup), replace=True, yes=True)
    leaves.join()
    assert Drawer.objects.count() == 2


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"migrations": [["palace", "9999_from_the_future"]]}, "a newer Loci"),
        ({"format_version": 99}, "written by a newer Loci"),
        ({"format": "other"}, "is no backup of Loci"),
        ({"rows": {"palace_drawer": 3}}, "palace_drawer has other than 3 rows"),
    ],
)
def test_what_does_not_fit_changes_nothing(changes, said, backup, capsys):
    Drawer.objects.filter(position=0).delete()
    with pytest.raises(CommandError, match=said):
        restore(rewritten(backup, **changes), capsys, replace=True, yes=True)
    assert Drawer.objects.count() == 1


def test_a_dump_that_breaks_off_changes_nothing(backup, capsys, tmp_path):
    with zipfile.ZipFile(backup) as whole:
        dump = whole.read("database.dump")
        manifest = json.loads(whole.read("manifest.json"))
    torn = tmp_path / "torn.locibackup"
    with torn.open("wb") as out, writing(out, "") as archive:
        archive.add("database.dump", [dump[: len(dump) * 3 // 4]])
        archive.finish({name: manifest[name] for name in ("loci", "made_at", "migrations", "rows")})
    Drawer.objects.filter(position=0).delete()
    with pytest.raises(CommandError, match="pg_restore failed"):
        restore(torn, capsys, replace=True, yes=True)
    assert Drawer.objects.count() == 1


@pytest.mark.exhaustive
def test_an_older_backup_is_brought_up_to_date(palace, capsys, tmp_path):
    """As from a version without the last migration."""
    migrate_back()
    try:
        call_command("backup", str(tmp_path / "old.locibackup"))
    finally:
        call_command("migrate", verbosity=0)
    restore(tmp_path / "old.locibackup", capsys, replace=True, yes=True)
    recorder = MigrationRecorder(connection)
    assert ("palace", "0023_statements") in recorder.applied_migrations()
    assert Drawer.objects.count() == 2


def test_redis_forgets_what_was_of_the_former_database(backup, palace, capsys):
    client = redis.Redis.from_url(settings.REDIS_URL)
    Ledger(palace, "talk").mark(LedgerEntry("skill:sewing"))
    client.lpush("celery", "a task")
    cache.set("sign-in-once:nonce", 1)
    cache.set("retry", 1)
    restore(backup, capsys, replace=True, yes=True)
    assert Ledger(palace, "talk").get() == {}
    assert not client.exists("celery")
    assert cache.get("retry") is None
    assert cache.get("sign-in-once:nonce") == 1, "An address that was used stays used."
    cache.clear()
    client.close()


def test_the_signing_key_comes_back_and_the_former_one_is_kept(palace, tmp_path, capsys):
    own = settings.LOCI_HOME / "secret_key"
    was = own.read_text()
    file = tmp_path / "one.locibackup"
    call_command("backup", str(file), with_secrets=True)
    own.write_text("another")
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(settings, "SECRET_KEY", "another")
            said = restore(file, capsys, replace=True, yes=True)
        assert own.read_text() == was
        assert (settings.LOCI_HOME / "secret_key.before-restore").read_text() == "another"
        assert was not in said
    finally:
        own.write_text(was)


def test_an_encrypted_one_needs_its_passphrase(palace, tmp_path, capsys, settings):
    settings.BACKUP_PASSPHRASE = "correct horse"
    file = tmp_path / "one.locibackup"
    call_command("backup", str(file))
    settings.BACKUP_PASSPHRASE = ""
    with pytest.raises(CommandError, match="is encrypted"):
        restore(file, capsys, replace=True, yes=True)
    settings.BACKUP_PASSPHRASE = "wrong"
    with pytest.raises(CommandError, match="The passphrase is not the one"):
        restore(file, capsys, replace=True, yes=True)
    settings.BACKUP_PASSPHRASE = "correct horse"
    restore(file, capsys, replace=True, yes=True)
    assert Drawer.objects.count() == 2


def test_no_file_is_a_sentence(capsys):
    with pytest.raises(CommandError, match="No such file"):
        restore("/nowhere", capsys)


# It waits for a table that all databases share: who holds it needs no connection to this one.
WAIT_AT_KEY = """
CREATE SCHEMA waiting;
CREATE FUNCTION waiting.wait() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN
  IF EXISTS (SELECT FROM pg_constraint WHERE conname = '{}') THEN
    LOCK TABLE pg_shdescription IN SHARE MODE;
  END IF;
END $$;
CREATE EVENT TRIGGER waits ON ddl_command_end WHEN TAG IN ('ALTER TABLE')
  EXECUTE FUNCTION waiting.wait();
"""
KEY = re.compile(rb"ADD CONSTRAINT (\w+) PRIMARY KEY [^;]*;\n")
# What psql reads at once, and what a pipe holds.
BLOCK, PIPE = 4096, 65536


def key_before_a_break(backup, folder):
    """A primary key at which psql has got a script that ends between two statements.

    Where it ends within one, that fails, and nothing is committed anyway.
    """
    with zipfile.ZipFile(backup) as whole:
        dump = whole.extract("database.dump", folder)
    command = [find_tool("pg_restore", 18), "--no-owner", "--file=-", dump]
    script = subprocess.run(command, capture_output=True, check=True).stdout
    for key in KEY.finditer(script):
        end = -(-key.end() // BLOCK) * BLOCK + PIPE
        line = script[script.rindex(b"\n", 0, end) + 1 : end]
        if line.startswith(b"-- ") and end < len(script):
            return key[1].decode()
    raise AssertionError("No key is so far before a comment.")


@pytest.fixture
def waits_at_a_key(backup, tmp_path):
    with connection.cursor() as cursor:
        cursor.execute(WAIT_AT_KEY.format(key_before_a_break(backup, tmp_path)))
    yield
    with connection.cursor() as cursor:
        cursor.execute("DROP EVENT TRIGGER waits; DROP SCHEMA waiting CASCADE")


@contextmanager
def restoring(file):
    """A process that restores, and has loaded all rows, and not all keys; then it may go on."""
    address = Layout(settings.LOCI_HOME).database_url.rpartition("/")[0]
    environment = os.environ | {
        "LOCI_HOME": str(settings.LOCI_HOME),
        "LOCI_SECRET_KEY": settings.SECRET_KEY,
        "DATABASE_URL": f"{address}/{connection.settings_dict['NAME']}",
        "REDIS_URL": settings.REDIS_URL,
    }
    command = [sys.executable, str(PROJECT / "manage.py"), "restore", str(file)]

    def waits_for():
        """What psql waits for; None if there is none."""
        return beside.execute(
            "SELECT coalesce(wait_event_type, '') FROM pg_stat_activity"
            " WHERE application_name = 'psql'"
        ).fetchone()

    with psycopg.connect(f"{address}/postgres", autocommit=True) as beside:
        with psycopg.connect(f"{address}/postgres") as holder:
            holder.execute("LOCK TABLE pg_shdescription IN EXCLUSIVE MODE")
            with subprocess.Popen(
                [*command, "--replace", "--yes"],
                env=environment,
                stdout=subprocess.DEVNULL,
                preexec_fn=as_from_a_shell,
            ) as process:
                until(lambda: waits_for() == ("Lock",) or process.poll() is not None)
                yield process
                process.kill()
        until(lambda: waits_for() is None)


def test_one_that_is_killed_changes_nothing_and_says_what_to_do(
    backup, palace, capsys, waits_at_a_key
):
    """The end of its input, which psql takes for the end of the backup, is not the whole."""
    Drawer.objects.filter(position=0).delete()
    connection.close()
    with restoring(backup) as process:
        assert process.poll() is None
    assert Drawer.objects.count() == 1
    assert [path.name for path in settings.LOCI_HOME.glob(".unpacked-restore.*")] != []
    assert f"{backup} --replace --yes` again" in why_unfinished()
    restore(backup, capsys, replace=True, yes=True)
    assert Drawer.objects.count() == 2
    assert list(settings.LOCI_HOME.glob(".unpacked-restore.*")) == []
    assert why_unfinished() is None


def test_one_that_is_interrupted_says_that_it_may_have_happened(backup, palace, waits_at_a_key):
    connection.close()
    with restoring(backup) as process:
        process.send_signal(signal.SIGINT)
        assert process.wait() != 0
    assert f"{backup} --replace --yes` again" in why_unfinished()


def test_an_error_leaves_it_to_an_earlier_one_to_be_finished(backup, palace, capsys):
    mark = settings.LOCI_HOME / "unfinished-restore"
    damaged = rewritten(backup, rows={"palace_drawer": 3})
    with pytest.raises(CommandError, match="other than 3 rows"):
        restore(damaged, capsys, replace=True, yes=True)
    assert not mark.exists()
    mark.write_text("earlier.locibackup")
    with pytest.raises(CommandError, match="other than 3 rows"):
        restore(damaged, capsys, replace=True, yes=True)
    assert "earlier.locibackup --replace" in why_unfinished()
    restore(backup, capsys, replace=True, yes=True)
    assert not mark.exists()
