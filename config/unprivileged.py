"""Run a program as somebody other than root, touching no file's owner or mode.

PostgreSQL refuses to run as root. On Linux a user namespace settles it: inside, the program is
user 1000 and holds no privilege; outside, its files still belong to whoever started it, so no
folder above the data needs opening to others.

Used as a program: `python unprivileged.py COMMAND [ARGUMENT ...]` becomes COMMAND.
"""

from __future__ import annotations

import ctypes
import os
import pwd
import sys
from pathlib import Path

CLONE_NEWUSER = 0x10000000
INNER_ID = 1000
FALLBACK_USER = "nobody"


def can_enter_namespace() -> bool:
    """Whether this system lets root make a user namespace; tried in a child that then ends."""
    pid = os.fork()
    if pid == 0:
        os._exit(0 if _enter_namespace() else 1)
    return os.waitpid(pid, 0)[1] == 0


def _enter_namespace() -> bool:
    outer_user, outer_group = os.geteuid(), os.getegid()
    unshare = getattr(ctypes.CDLL(None, use_errno=True), "unshare", None)
    if unshare is None or unshare(CLONE_NEWUSER) != 0:
        return False
    try:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{INNER_ID} {outer_user} 1")
        Path("/proc/self/gid_map").write_text(f"{INNER_ID} {outer_group} 1")
    except OSError:
        return False
    return os.geteuid() == INNER_ID


def fallback_ids() -> tuple[int, int]:
    """The user and group to become where there are no namespaces; its data must belong to them."""
    account = pwd.getpwnam(FALLBACK_USER)
    return account.pw_uid, account.pw_gid


def main(command: list[str]) -> None:
    if os.geteuid() == 0 and not _enter_namespace():
        user, group = fallback_ids()
        os.setgroups([])
        os.setgid(group)
        os.setuid(user)
    os.execv(command[0], command)  # noqa: S606 - becoming the program is the purpose.


if __name__ == "__main__":
    main(sys.argv[1:])
