"""Run a program without root privileges, without opening folders to other users.

PostgreSQL refuses to run as root. On Linux a user namespace solves this: inside, the program is
user 1000 without privileges; outside, its files still belong to the user who started it. Where
namespaces are forbidden, as in most containers, it becomes `nobody` and keeps of root's powers
only that of traversing closed folders, so that it can access its data anywhere.

Run as a program, `python unprivileged.py namespace|nobody COMMAND [ARGUMENT ...]` becomes COMMAND.
"""

from __future__ import annotations

import ctypes
import os
import pwd
import subprocess
import sys
from pathlib import Path

CLONE_NEWUSER = 0x10000000
INNER_ID = 1000
FALLBACK_USER = "nobody"

PR_SET_KEEPCAPS = 8
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_RAISE = 2
CAP_DAC_OVERRIDE = 1
CAPABILITY_VERSION_3 = 0x20080522


def how_for(data: Path) -> str:
    """`namespace` or `nobody`: the owner of the existing data, else the best available."""
    nobody, _ = fallback_ids()
    if data.exists() and data.stat().st_uid == nobody:
        return "nobody"
    probe = subprocess.run([*command("namespace"), "/bin/true"], capture_output=True, check=False)  # noqa: S603
    return "namespace" if probe.returncode == 0 else "nobody"


def command(how: str) -> list[str]:
    """The prefix of a command that is to run unprivileged."""
    return [sys.executable, "-I", __file__, how]


def fallback_ids() -> tuple[int, int]:
    """The user and group of `nobody`."""
    account = pwd.getpwnam(FALLBACK_USER)
    return account.pw_uid, account.pw_gid


def _enter_namespace() -> None:
    outer_user, outer_group = os.geteuid(), os.getegid()
    unshare = getattr(_libc(), "unshare", None)
    if unshare is None or unshare(CLONE_NEWUSER) != 0:
        raise OSError(ctypes.get_errno(), "User namespaces are not allowed here.")
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{INNER_ID} {outer_user} 1")
    Path("/proc/self/gid_map").write_text(f"{INNER_ID} {outer_group} 1")
    # Only now is the program user 1000; without the mapping it would have no user.
    if os.geteuid() != INNER_ID:
        raise PermissionError("The user could not be mapped.")


def _become_nobody() -> None:
    user, group = fallback_ids()
    libc = _libc()
    libc.prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0)
    os.setgroups([])
    os.setgid(group)
    os.setuid(user)
    # A container may lack this capability. Then the program runs without it, and
    # reports itself which folder it could not enter.
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0)
    effective_permitted_inheritable = (ctypes.c_uint32 * 6)(*[1 << CAP_DAC_OVERRIDE] * 3, 0, 0, 0)
    if libc.capset(header, effective_permitted_inheritable) == 0:
        libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_DAC_OVERRIDE, 0, 0)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def main(arguments: list[str]) -> None:
    how, *program = arguments
    if os.geteuid() == 0:
        _enter_namespace() if how == "namespace" else _become_nobody()
    os.execv(program[0], program)  # noqa: S606 - becoming the program is the purpose.


if __name__ == "__main__":
    main(sys.argv[1:])


def give(folder: Path, owner: int) -> None:
    """Make the folder and all in it theirs."""
    for path in [folder, *folder.rglob("*")]:
        os.chown(path, owner, -1, follow_symlinks=False)
