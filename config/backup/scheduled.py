"""Backups that nobody asks for: by the clock, and before tables are changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from django.conf import settings
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from config.backup.dump import Backup, back_up, keep_newest, new_name
from config.backup.tools import server_of
from isolation import reach

BEFORE_MIGRATING = "before-migrating"
KEPT_BEFORE_MIGRATING = 3


def back_up_by_the_clock() -> Backup:
    """Write a backup into the folder of backups, and delete the oldest ones there.

    Raises:
        BackupError: As `back_up`.
        OSError: As `back_up`.
    """
    return _write("", settings.BACKUP_KEEP)


def back_up_before_migrating(say: Callable[[str], None]) -> Path | None:
    """Write a backup if migrations are waiting and there is anything to lose; returns the file.

    Raises:
        BackupError: As `back_up`.
        OSError: As `back_up`.
    """
    # Before the first migration of all there is no role to run as.
    with reach.maintenance():
        if not _has_accounts() or not _is_behind():
            return None
    say("The tables are about to change; saving everything first ...")
    return _write(BEFORE_MIGRATING, KEPT_BEFORE_MIGRATING).file


def _write(label: str, keep: int) -> Backup:
    folder = settings.BACKUP_FOLDER
    done = back_up(
        server_of(connection.settings_dict),
        new_name(folder, label),
        passphrase=settings.BACKUP_PASSPHRASE,
        with_secrets=False,
    )
    keep_newest(folder, keep, label)
    return done


def _has_accounts() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass('auth_user')")
        if cursor.fetchone() == (None,):
            return False
        cursor.execute("SELECT EXISTS (SELECT FROM auth_user)")
        return bool(cursor.fetchone() == (True,))


def _is_behind() -> bool:
    executor = MigrationExecutor(connection)
    return bool(executor.migration_plan(executor.loader.graph.leaf_nodes()))
