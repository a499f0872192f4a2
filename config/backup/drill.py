"""A drill: a backup is restored in a place of its own and audited there, and the place removed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from django.conf import settings

from config.embedded import Layout

# What would lead the drill to the database, or the keys, in use.
_OURS = ("DATABASE_URL", "REDIS_URL", "LOCI_SECRET_KEY", "LOCI_HOME", "DJANGO_SETTINGS_MODULE")


def restores_whole(file: Path, passphrase: str) -> bool:
    """Whether the backup can be restored and is whole; what the restore says is shown.

    A program of its own starts PostgreSQL and Redis in a temporary folder and stops them again.
    """
    with tempfile.TemporaryDirectory(prefix="loci-drill-") as home:
        kept = {name: value for name, value in os.environ.items() if name not in _OURS}
        environment = {
            **kept,
            "LOCI_HOME": home,
            "LOCI_MODELS_DIR": str(settings.MODELS_DIR),
            "LOCI_BACKUP_PASSPHRASE": passphrase,
        }
        command = [sys.executable, str(settings.BASE_DIR / "manage.py"), "restore", str(file)]
        done = subprocess.run(  # noqa: S603 - ourselves.
            command, env=environment, check=False, stdin=subprocess.DEVNULL
        )
        # Beside the folder where its path is too long for a socket.
        shutil.rmtree(Layout(Path(home)).sockets, ignore_errors=True)
    return done.returncode == 0
