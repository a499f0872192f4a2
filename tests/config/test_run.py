from __future__ import annotations

import contextlib
import http.client
import os
import pty
import re
import select
import signal
import socket
import subprocess
import sys
import threading

import psutil
import psycopg
import pytest

from config.embedded import Layout
from tests.config.conftest import PROJECT, House, as_from_a_shell
from tests.polling import PATIENCE_S, wait_until


class Terminal:
    """`manage.py run` in a terminal of its own; `said` is all it showed so far."""

    def __init__(self, house: House, port: int) -> None:
        self.port = port
        self.said = ""
        self.pid, self._screen = pty.fork()
        if self.pid == 0:
            as_from_a_shell()
            command = [sys.executable, str(PROJECT / "manage.py"), "run", "--port", str(port)]
            os.execve(command[0], command, house.environment)  # noqa: S606
        self._closing = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        # A terminal whose programs have all ended answers with an error.
        while not self._closing.is_set():
            if not select.select([self._screen], [], [], 0.1)[0]:
                continue
            try:
                shown = os.read(self._screen, 65536)
            except OSError:
                return
            self.said += shown.decode(errors="replace").replace("\r\n", "\n")

    def press_ctrl_c(self) -> None:
        os.write(self._screen, b"\x03")

    def close(self) -> None:
        """Close the window; it would stay open for as long as it was being read."""
        self._closing.set()
        self._reader.join()
        os.close(self._screen)

    def shows(self, text: str, timeout_s: float = 180) -> bool:
        return wait_until(lambda: text in self.said, timeout_s)

    def link(self) -> str:
        assert self.shows("Ctrl-C stops everything."), self.said
        (found,) = re.findall(rf"http://127\.0\.0\.1:{self.port}(/\S+/once/\S+)", self.said)
        return found

    def ends(self, timeout_s: float = 120) -> int | None:
        """Its exit code, or None if it goes on for longer."""
        result = (0, 0)

        def has_ended() -> bool:
            nonlocal result
            result = os.waitpid(self.pid, os.WNOHANG)
            return result[0] != 0

        return os.waitstatus_to_exitcode(result[1]) if wait_until(has_ended, timeout_s) else None


def get(port: int, path: str) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=90)
    connection.request("GET", path)
    response = connection.getresponse()
    response.read()
    connection.close()
    return response


def opens(port: int, path: str) -> bool:
    """Whether the link signs in; an answer of 503 is tried again in a moment."""
    answers: list[http.client.HTTPResponse] = []

    def has_answered() -> bool:
        answers.append(get(port, path))
        return answers[-1].status != 503

    wait_until(has_answered)
    return "sessionid" in (answers[-1].getheader("Set-Cookie") or "")


def answers(port: int) -> bool:
    try:
        return get(port, "/health").status == 200
    except OSError:
        return False


@pytest.mark.exhaustive
def test_a_folder_to_watch_that_is_not_there_stops_the_start(house, tmp_path):
    house.environment["LOCI_WATCH_FOLDER"] = str(tmp_path / "none")
    ended = house.manage("run", check=False)
    assert ended.returncode != 0
    assert "there is no such folder" in ended.stderr
    assert house.names() == []


def test_a_restore_that_was_interrupted_stops_the_start(new_house, tmp_path):
    new_house.home.mkdir()
    mark = new_house.home / "unfinished-restore"
    mark.write_text("/backups/one.locibackup")
    ended = new_house.manage("run", check=False)
    assert ended.returncode != 0
    assert "restore /backups/one.locibackup --replace --yes` again" in ended.stderr
    assert f"delete {mark}" in ended.stderr
    assert new_house.names() == []


@pytest.mark.lengthy
@pytest.mark.exhaustive
def test_a_folder_is_watched_while_it_runs(house, free_port, tmp_path):
    house.environment["LOCI_WATCH_FOLDER"] = str(tmp_path)
    terminal = Terminal(house, free_port)
    assert terminal.shows("Watching."), terminal.said
    talk = '{"id": "a", "messages": [{"role": "user", "text": "The ferry leaves at nine."}]}'
    (tmp_path / "talk.jsonl").write_text(f"{talk}\n")
    assert terminal.shows("= stored                 1"), terminal.said
    terminal.press_ctrl_c()
    assert terminal.ends(180) == 0, terminal.said
    assert house.names() == []


@pytest.mark.lengthy
def test_one_command_starts_everything_and_ctrl_c_leaves_nothing_running(house, free_port):
    terminal = Terminal(house, free_port)
    link = terminal.link()

    assert opens(free_port, link), terminal.said
    assert not opens(free_port, link), "It works once."

    second = house.manage("run", "--port", str(free_port), check=False)
    assert second.returncode != 0
    assert f"already running on {house.home} (process {terminal.pid})" in second.stderr
    assert f"http://127.0.0.1:{free_port}/" in second.stderr
    assert "Traceback" not in second.stderr

    terminal.press_ctrl_c()
    assert terminal.shows("Stopping")
    terminal.press_ctrl_c()  # An impatient second one changes nothing.
    assert terminal.ends(180) == 0, terminal.said
    assert house.names() == []
    assert terminal.shows("everything is kept for the next start")


@pytest.mark.lengthy
@pytest.mark.exhaustive
def test_what_dies_is_started_again_and_a_killed_start_leaves_nothing_running(house, free_port):
    terminal = Terminal(house, free_port)
    link = terminal.link()

    the_program(house, "uvicorn").kill()
    assert terminal.shows("web      | was ended by SIGKILL; starting it again")
    assert wait_until(lambda: answers(free_port), 120), terminal.said

    the_program(house, "guardian.py").kill()
    # Postgres and Redis are started again too, maybe before anybody has asked for them.
    for words in ("redis-server unixsocket", "postgres -D"):
        killed = the_program(house, words)
        killed.kill()
        assert wait_until(lambda: the_program(house, words).pid != killed.pid, 120), terminal.said  # noqa: B023
    assert wait_until(lambda: answers(free_port), 120), terminal.said

    os.kill(terminal.pid, signal.SIGKILL)
    assert terminal.ends() == -signal.SIGKILL
    assert wait_until(lambda: house.names() == [], 30), house.names()

    again = Terminal(house, free_port)
    again.link()
    # The next start has all data: the old link is still good.
    assert opens(free_port, link), again.said
    again.close()
    assert again.ends(180) == 0, "A closed window stops everything too."
    assert wait_until(lambda: house.names() == [], 30), house.names()


def the_program(house: House, words: str, timeout_s: float = PATIENCE_S) -> psutil.Process:
    """The one of these words that began first: the others are its children."""

    def matches(process: psutil.Process) -> bool:
        with contextlib.suppress(psutil.Error):
            return words in " ".join(process.cmdline())
        return False

    assert wait_until(lambda: any(map(matches, house.processes())), timeout_s), house.names()
    return min(filter(matches, house.processes()), key=psutil.Process.create_time)


@pytest.mark.exhaustive
@pytest.mark.parametrize("seconds", [0.1, 0.6, 1.2, 2.0])
def test_stopping_half_way_through_the_first_start_leaves_nothing(new_house, free_port, seconds):
    house = new_house
    starting = house.start(
        "run", "--port", str(free_port), stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    wait_until(lambda: False, seconds)
    starting.send_signal(signal.SIGTERM)
    said, _ = starting.communicate(timeout=120)
    assert b"Traceback" not in said
    assert wait_until(lambda: house.names() == [], 30), house.names()


def migrations_of(house: House) -> int:
    """How many have been applied; 0 before the database is there."""
    with contextlib.suppress(psycopg.Error):
        url = Layout(house.home).database_url
        with psycopg.connect(url, connect_timeout=5) as connection:
            (count,) = connection.execute("SELECT count(*) FROM django_migrations").fetchone()
            return count
    return 0


@pytest.mark.exhaustive
@pytest.mark.parametrize("moment", ["cluster", "tables", "programs"])
def test_a_first_start_that_is_killed_leaves_nothing_and_the_next_one_is_well(
    new_house, free_port, moment
):
    """Killed while the database or its tables are made, or just when the programs begin."""
    house, terminal = new_house, Terminal(new_house, free_port)
    if moment == "cluster":
        assert wait_until(lambda: any(house.home.glob("postgres.new.*"))), terminal.said
    elif moment == "tables":
        assert wait_until(lambda: migrations_of(house) > 10, 120, every_s=0.1), terminal.said
        assert "Starting the web" not in terminal.said
    else:
        the_program(house, "-A config worker", 180)
    assert "redis-server unixsocket" in " ".join(house.names())

    os.kill(terminal.pid, signal.SIGKILL)
    assert terminal.ends() == -signal.SIGKILL
    assert wait_until(lambda: house.names() == [], 60), house.names()

    again = Terminal(house, free_port)
    assert opens(free_port, again.link()), again.said
    assert "Traceback" not in again.said
    assert "-A config worker" in " ".join(house.names())
    again.press_ctrl_c()
    assert again.ends(180) == 0, again.said
    assert house.names() == []


@pytest.mark.exhaustive
def test_a_busy_port_gets_a_sentence_before_anything_is_started(new_house, free_port):
    house = new_house
    with socket.socket() as other:
        other.bind(("127.0.0.1", free_port))
        other.listen()
        refused = house.manage("run", "--port", str(free_port), check=False)
    assert refused.returncode != 0
    assert refused.stderr.startswith(f"Loci: Port {free_port} is taken by another program")
    assert f"make run PORT={free_port + 1}" in refused.stderr
    assert not (house.home / "postgres").exists()


@pytest.mark.exhaustive
@pytest.mark.parametrize("port", ["65536", "0", "-1"])
def test_an_impossible_port_gets_a_sentence(new_house, port):
    refused = new_house.manage("run", f"--port={port}", check=False)
    assert refused.stderr.startswith(f"Loci: {port} is not a port.")


def test_others_in_the_network_are_let_in_only_if_it_was_said_whether_they_may_sign_up(house):
    everywhere = ("run", "--host", "0.0.0.0", "--port", "0")  # noqa: S104 - to be refused.
    house.environment.pop("LOCI_SIGN_UP", None)
    refused = house.manage(*everywhere, check=False)
    assert refused.returncode == 1
    assert "LOCI_SIGN_UP=false" in refused.stderr
    house.environment["LOCI_SIGN_UP"] = "false"
    goes_on = house.manage(*everywhere, check=False)
    assert "0 is not a port" in goes_on.stderr
