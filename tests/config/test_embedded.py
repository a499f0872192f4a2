from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import psycopg
import pytest
import redis

from config import embedded, environment, unprivileged
from tests.config.conftest import PROJECT
from tests.polling import wait_until

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="Only root is refused by Postgres.")

# Uses the services of the folder named first until a line comes in.
USER = """
import sys
from pathlib import Path
from config import embedded
with embedded.services(embedded.Layout(Path(sys.argv[1]))):
    print("up", flush=True)
    sys.stdin.readline()
"""


class User:
    """Another process that uses the services."""

    def __init__(self, house, before: tuple[str, ...] = ()) -> None:
        self.process = subprocess.Popen(
            [*before, sys.executable, "-c", USER, str(house.home)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=PROJECT,
            env={**house.environment, "LOCI_EMBEDDED_FSYNC": "off"},
        )

    def is_up(self) -> bool:
        return self.process.stdout.readline() == "up\n"

    def leave(self) -> str:
        """What it said on its way out."""
        _, errors = self.process.communicate("\n", timeout=180)
        return errors


@contextlib.contextmanager
def using(house, **options):
    user = User(house, **options)
    if not user.is_up():
        pytest.fail(user.leave())
    try:
        yield user
    finally:
        user.leave()


def ask_both(layout: embedded.Layout) -> tuple[str, bool]:
    with psycopg.connect(layout.database_url) as connection:
        database = connection.execute("SELECT current_database()").fetchone()[0]
    client = redis.Redis.from_url(layout.redis_url)
    pong = client.ping()
    client.close()
    return database, pong


@pytest.fixture
def layout(new_house):
    return embedded.Layout(new_house.home)


def test_services_stay_until_the_last_user_leaves(house, layout):
    with using(house):
        with using(house):
            started = layout.postgres.pid()
        assert layout.postgres.pid() == started
        assert ask_both(layout) == ("loci", True)
    assert house.names() == []


@pytest.mark.exhaustive
def test_who_started_them_may_leave_first(house, layout):
    first = User(house)
    assert first.is_up()
    with using(house):
        first.leave()
        assert ask_both(layout) == ("loci", True)
    assert wait_until(lambda: house.names() == [], 10), house.names()


@pytest.mark.exhaustive
def test_two_first_users_at_once_share_one_set_of_services(new_house, layout):
    house = new_house
    users = [User(house), User(house)]
    assert all(user.is_up() for user in users)
    assert ask_both(layout) == ("loci", True)
    assert [user.leave() for user in users] == ["", ""]
    assert wait_until(lambda: house.names() == [], 10), house.names()


def test_killed_users_leave_nothing_running(house):
    users = [User(house), User(house)]
    assert all(user.is_up() for user in users)
    for user in users:
        user.process.kill()
        user.leave()
    assert wait_until(lambda: house.names() == [], 20), house.names()


@pytest.mark.exhaustive
@pytest.mark.parametrize("seconds", [0.3, 0.8, 1.3, 1.8])
def test_a_first_user_killed_at_any_moment_leaves_nothing_that_stops_the_next(
    new_house, layout, seconds
):
    house = new_house
    user = User(house)
    wait_until(lambda: False, seconds)
    user.process.kill()
    user.leave()
    with using(house):
        assert ask_both(layout) == ("loci", True)
    assert wait_until(lambda: house.names() == [], 20), house.names()


@pytest.mark.exhaustive
def test_data_outlives_its_services_and_their_crash(house, layout):
    with using(house), psycopg.connect(layout.database_url) as connection:
        connection.execute("CREATE TABLE note AS SELECT 'the key is under the mat' AS text")
        connection.commit()
        client = redis.Redis.from_url(layout.redis_url)
        client.set("errand", "milk")
        client.close()
    with using(house):
        os.kill(layout.postgres.pid(), signal.SIGKILL)
        os.kill(layout.redis.pid(), signal.SIGKILL)
    with using(house), psycopg.connect(layout.database_url) as connection:
        assert connection.execute("SELECT text FROM note").fetchone() == (
            "the key is under the mat",
        )
        client = redis.Redis.from_url(layout.redis_url)
        assert client.get("errand") == b"milk"
        client.close()


@pytest.mark.exhaustive
def test_numbers_left_by_a_crash_are_nobodys_even_if_they_run_again(house, layout):
    with using(house):
        pass
    # After a reboot the old numbers belong to other programs: here to this one and its parent.
    layout.postgres.pid_file.write_text(f"{os.getpid()}\n{layout.postgres_data}\n1\n5432\n")
    (layout.sockets / ".s.PGSQL.5432.lock").write_text(f"{os.getpid()}\n")
    layout.redis.pid_file.write_text(f"{os.getppid()}\n")
    assert layout.postgres.pid() is None
    assert layout.redis.pid() is None
    with using(house):
        assert ask_both(layout) == ("loci", True)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["a home with spaces & signs", "h" * 120, "Ünïcödé"])
def test_any_folder_will_do(new_house, name):
    house = new_house
    house.home = house.home / name
    layout = embedded.Layout(house.home)
    try:
        with using(house):
            assert ask_both(layout) == ("loci", True)
    finally:
        if layout.sockets.parent != house.home:
            shutil.rmtree(layout.sockets)


@pytest.mark.exhaustive
def test_vectors_are_at_hand(new_house, layout):
    with using(new_house), psycopg.connect(layout.database_url, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION vector")
        distance = connection.execute("SELECT '[1,0]'::halfvec <=> '[0,1]'::halfvec").fetchone()
        assert distance == (1.0,)


@pytest.mark.exhaustive
def test_a_big_log_is_put_aside_at_the_next_start(new_house, layout):
    house = new_house
    layout.create()
    layout.redis_log.write_bytes(b"x" * (embedded.MAX_LOG_BYTES + 1))
    with using(house):
        assert layout.redis_log.stat().st_size < embedded.MAX_LOG_BYTES
    assert layout.redis_log.with_suffix(".log.old").stat().st_size > embedded.MAX_LOG_BYTES


@pytest.mark.exhaustive
def test_a_service_that_cannot_start_is_quoted_and_leaves_nothing_running(house, layout):
    with using(house):
        pass
    (layout.postgres_data / "postgresql.auto.conf").write_text("no_such_setting = 1\n")
    said = User(house).leave()
    assert "Postgres did not start. It said" in said
    assert "no_such_setting" in said
    assert wait_until(lambda: house.names() == [], 10), house.names()


@as_root
def test_a_folder_of_somebody_else_is_refused_with_a_sentence(new_house):
    house = new_house
    house.home.mkdir()
    os.chown(house.home, 12345, 12345)
    refused = house.manage("check", check=False)
    assert refused.returncode != 0
    assert refused.stderr.startswith(f"Loci: {house.home} belongs to another user")


@pytest.mark.exhaustive
@as_root
def test_a_full_disk_gets_a_sentence(new_house):
    house = new_house
    house.home.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=20m", "tmpfs", house.home], check=True)
    try:
        refused = house.manage("check", check=False)
        (house.home / "filler").write_bytes(b"x" * (19 * 2**20))
        with contextlib.suppress(OSError), (house.home / "more").open("wb") as more:
            more.write(b"x" * 2**20)
        full = house.manage("check", check=False)
    finally:
        subprocess.run(["umount", house.home], check=True)
    for command in (refused, full):
        assert command.returncode != 0
        assert "Traceback" not in command.stderr
        assert "free" in command.stderr.lower()


def modes(*folders: Path) -> dict[Path, tuple[int, int, int]]:
    return {path: (path.stat().st_mode, path.stat().st_uid, path.stat().st_gid) for path in folders}


# Root without user namespaces, as in most containers: in a namespace of its own that maps every
# user to itself, and in which no further one may be made.
WITHOUT_NAMESPACES = """
import ctypes, os, sys
from pathlib import Path
ready, mapped = os.pipe(), os.pipe()
child = os.fork()
if child == 0:
    assert ctypes.CDLL(None).unshare(0x10000000) == 0
    os.write(ready[1], b"1")
    os.read(mapped[0], 1)
    Path("/proc/sys/user/max_user_namespaces").write_text("0")
    os.execv(sys.argv[1], sys.argv[1:])
os.read(ready[0], 1)
for kind in ("uid", "gid"):
    Path(f"/proc/{child}/{kind}_map").write_text("0 0 65536")
os.write(mapped[1], b"1")
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
NO_NAMESPACES = (sys.executable, "-c", WITHOUT_NAMESPACES)


@as_root
@pytest.mark.exhaustive
@pytest.mark.parametrize(("before", "owner"), [((), "root"), (NO_NAMESPACES, "nobody")])
def test_root_opens_no_folder_to_others(new_house, layout, before, owner):
    house = new_house
    closed = house.home.parent / "closed"
    closed.mkdir(mode=0o700)
    house.home = closed / "home"
    layout = embedded.Layout(house.home)
    package = Path(psycopg.__file__).parent
    watched = [closed, *closed.parents, PROJECT / ".venv", package, *package.parents]
    was = modes(*watched)
    with using(house, before=before):
        assert ask_both(layout) == ("loci", True)
        assert layout.postgres_data.owner() == owner
    assert modes(*watched) == was
    assert house.home.stat().st_mode & 0o777 == 0o700


@as_root
@pytest.mark.exhaustive
def test_data_made_without_namespaces_serve_on_with_them_and_the_other_way_round(new_house, layout):
    house = new_house
    with using(house):
        assert layout.postgres_data.owner() == "root"
    with using(house, before=NO_NAMESPACES):
        assert ask_both(layout) == ("loci", True)
        assert layout.postgres_data.owner() == "nobody"
    with using(house):
        assert ask_both(layout) == ("loci", True)


@as_root
def test_postgres_holds_no_power_of_roots_in_its_namespace(tmp_path):
    command = [*unprivileged.command("namespace"), "/bin/cat", "/proc/self/status"]
    status = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "CapEff:\t0000000000000000" in status
    assert "CapPrm:\t0000000000000000" in status


def test_a_signing_key_is_made_once_and_for_its_owner_only(tmp_path):
    layout = embedded.Layout(tmp_path / "home")
    [key] = environment.read_keys(layout.home)
    assert len(key) >= 50
    assert environment.read_keys(layout.home) == [key]
    environment.keep_keys(layout.home, ["new", key])
    assert environment.read_keys(layout.home) == ["new", key]
    assert (tmp_path / "home" / "secret_key").stat().st_mode & 0o777 == 0o600


def test_where_the_sockets_are_does_not_hang_on_the_temporary_folder(tmp_path, monkeypatch):
    """The web has one of its own, and has to find Postgres all the same."""
    short, long = embedded.Layout(Path("/home/ada/.loci")), embedded.Layout(tmp_path / ("x" * 120))
    before = short.sockets, long.sockets
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)  # What it has found out before.
    assert (short.sockets, long.sockets) == before
    assert len(str(long.sockets)) < 60


@pytest.mark.parametrize("name", embedded.UNUSED_COMMANDS)
def test_commands_of_redis_that_are_not_used_are_switched_off(settings, name):
    unknown = pytest.raises(redis.ResponseError, match="unknown command")
    with redis.Redis.from_url(settings.REDIS_URL) as store, unknown:
        store.execute_command(name, "a")


def test_the_embedded_redis_opens_no_port_and_is_for_its_user_alone(settings):
    with redis.Redis.from_url(settings.REDIS_URL) as store:
        assert store.config_get("port") == {"port": "0"}
        socket = Path(store.config_get("unixsocket")["unixsocket"])
    assert stat.S_IMODE(socket.stat().st_mode) == 0o700
    assert stat.S_IMODE(socket.parent.stat().st_mode) == 0o700


def test_a_redis_that_cannot_write_counts_as_running(tmp_path):
    layout = embedded.Layout(tmp_path)
    layout.sockets.mkdir()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(layout.sockets / "redis.sock"))
        server.listen()

        def answer():
            asker, _ = server.accept()
            with asker:
                while asker.recv(1000):
                    asker.sendall(b"-MISCONF Errors writing to the AOF file: No space left\r\n" * 4)

        threading.Thread(target=answer, daemon=True).start()
        assert embedded._redis_answers(layout)
