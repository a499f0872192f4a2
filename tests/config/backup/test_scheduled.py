from __future__ import annotations

import logging
import os
import subprocess
import sys

import pytest
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from config import celery, tasks
from config.backup import unpack
from config.backup.dump import back_up_before_migrating
from isolation import row_access
from isolation.policies import ROLES
from palace.models import Drawer, Palace
from palace.models.concurrency import held_if_free
from tests.config.backup.test_drill import remember
from tests.config.conftest import PROJECT
from tests.config.test_run import Terminal
from tests.older_tables import migrate_back, undo_last_migration

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def folder(settings, tmp_path):
    settings.BACKUP_FOLDER = tmp_path / "backups"
    return settings.BACKUP_FOLDER


def names(folder):
    return sorted(path.name for path in folder.glob("*"))


def schedule(**environment):
    """What the clock reports, and why a start would stop."""
    script = "from config import settings; print(settings.CELERY_BEAT_SCHEDULE.get('back up'))"
    return subprocess.run(
        [sys.executable, "-c", script],
        cwd=PROJECT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_clock_asks_for_backups_only_where_they_were_asked_for():
    assert schedule().stdout == "None\n"
    asked = schedule(LOCI_BACKUP_EVERY_H="12").stdout
    assert asked.startswith("{'task': 'config.tasks.back_up', 'schedule': 43200.0,")
    celery.app.loader.import_default_modules()
    assert "config.tasks.back_up" in celery.app.tasks


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("name", "value"), [("LOCI_BACKUP_EVERY_H", "0.5"), ("LOCI_BACKUP_KEEP", "0")]
)
def test_a_value_that_makes_no_sense_stops_the_start(name, value):
    assert f"{name} is {value}" in schedule(**{name: value}).stderr


def test_a_worker_that_has_opened_nothing_saves_all(palace, folder, tmp_path):
    with row_access.deny_all():
        tasks.back_up()
    [name] = names(folder)
    manifest = unpack(folder / name, tmp_path, "")
    assert manifest["rows"]["palace_palace"] == 1
    assert manifest["rows"]["palace_drawer"] == Drawer.objects.count() == 2


def test_the_task_writes_one_and_keeps_the_newest(palace, folder, settings):
    settings.BACKUP_KEEP = 2
    folder.mkdir()
    old = [f"loci-2026010{day}T000000Z.locibackup" for day in (1, 2)]
    before = "loci-20260101T000000Z-before-migrating.locibackup"
    for name in (*old, before):
        (folder / name).touch()
    tasks.back_up()
    left = names(folder)
    assert len(left) == 3
    assert {old[1], before} < set(left)


def test_a_failure_is_logged_and_deletes_nothing(palace, folder, settings, caplog):
    folder.parent.mkdir(exist_ok=True)
    settings.BACKUP_FOLDER = folder / "file" / "below"
    folder.mkdir()
    (folder / "file").touch()
    with caplog.at_level(logging.ERROR):
        tasks.back_up()
    assert "There is no new backup" in caplog.text


def test_two_workers_write_one(palace, folder):
    connection.ensure_connection()
    other = connection.copy()
    try:
        with other.cursor() as cursor:
            cursor.execute(
                "SELECT pg_advisory_lock(hashtextextended(current_schema() || ' back up', 0))"
            )
        with held_if_free("back up") as ours:
            assert not ours
        tasks.back_up()
    finally:
        other.close()
    assert not folder.exists()


@pytest.fixture
def behind(transactional_db):
    """The tables of the version before."""
    undo_last_migration()
    yield
    call_command("migrate", verbosity=0)


@pytest.mark.exhaustive
def test_tables_with_something_in_them_are_saved_before_they_change(
    palace, behind, folder, tmp_path
):
    migrate_back()
    said = []
    file = back_up_before_migrating(said.append)
    assert names(folder) == [file.name]
    assert file.name.endswith("-before-migrating.locibackup")
    assert said == ["The tables are about to change; saving everything first ..."]
    manifest = unpack(file, tmp_path, "")
    assert ["palace", "0023_statements"] not in manifest["migrations"]

    call_command("migrate", verbosity=0)
    Drawer.objects.all().delete()
    assert back_up_before_migrating(said.append) is None, "Nothing is about to change."
    call_command("restore", str(file), replace=True, yes=True, as_saved=True)
    applied = MigrationRecorder(connection).applied_migrations()
    assert ("palace", "0023_statements") not in applied
    assert Drawer.objects.count() == 2


@pytest.mark.exhaustive
def test_a_version_that_knew_no_roles_is_saved(palace, behind, folder):
    """What its tables were granted to is not there yet."""
    with connection.cursor() as cursor:
        cursor.execute(f"REVOKE ALL ON ALL TABLES IN SCHEMA public FROM {', '.join(ROLES)}")
    with row_access.deny_all():
        assert back_up_before_migrating(print) is not None
    call_command("migrate", verbosity=0)
    with row_access.sweep("what waits"):
        assert Drawer.objects.count() == 2


@pytest.mark.exhaustive
def test_empty_tables_need_no_saving(behind, folder):
    assert back_up_before_migrating(print) is None
    assert not folder.exists()


@pytest.mark.exhaustive
def test_the_last_three_of_before_are_kept(palace, behind, folder):
    folder.mkdir()
    for day in range(1, 5):
        (folder / f"loci-2026010{day}T000000Z-before-migrating.locibackup").touch()
    back_up_before_migrating(print)
    assert len(names(folder)) == 3
    assert Palace.objects.count() == get_user_model().objects.count() == 1


@pytest.mark.lengthy
@pytest.mark.exhaustive
def test_a_start_after_an_update_saves_first(house, free_port):
    remember(house)
    undo = "from tests import older_tables; older_tables.undo_last_migration()"
    house.manage("shell", "-c", undo)
    terminal = Terminal(house, free_port)
    try:
        assert terminal.shows("saved as"), terminal.said
        terminal.link()
        terminal.press_ctrl_c()
        assert terminal.ends() == 0
    finally:
        terminal.close()
    assert len(names(house.home / "backups")) == 1
