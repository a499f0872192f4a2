from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest

from config.management.commands.run import wait_for_web
from config.preconditions import CannotStart
from config.supervisor import Program, Supervisor
from tests.polling import wait_until

STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "


def python(name, code, **options):
    return Program(name, [sys.executable, "-u", "-c", code], **options)


def run(coroutine):
    """In a thread of its own: the browser of other tests keeps an event loop in this one."""
    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(asyncio.run, coroutine).result()


class Watched(Supervisor):
    """Keeps what is shown, and stops once it was asked to."""

    def __init__(self, programs, logs=None, *, stop_after="", **options):
        super().__init__(programs, logs or {}, self._keep_line, **options)
        self.said = []
        self.stop_after = stop_after

    def _keep_line(self, text):
        self.said.append(text.replace(" | ", ": "))
        if self.stop_after in self.said:
            self.stop()


def test_each_line_is_shown_with_its_program():
    supervisor = Watched(
        [python("one", "print('hello'); import time; time.sleep(60)")], stop_after="one: hello"
    )
    run(supervisor.run())
    assert supervisor.said == ["one: hello"]


def test_an_endless_line_and_odd_bytes_do_no_harm():
    code = (
        "import sys; sys.stdout.buffer.write(b'x' * 200_000 + b'\\n\\xff odd\\nlast\\n'); input()"
    )
    supervisor = Watched([python("one", code)], stop_after="one: last")
    run(supervisor.run())
    assert "one: \N{REPLACEMENT CHARACTER} odd" in supervisor.said


def test_what_ends_is_started_again():
    supervisor = Watched([python("one", "print('hello'); exit(3)")])

    async def stop_at_the_second_hello():
        while supervisor.said.count("one: hello") < 2:
            await asyncio.sleep(0.02)
        supervisor.stop()

    run(supervisor.run(stop_at_the_second_hello()))
    assert supervisor.said[:2] == ["one: hello", "one: ended with code 3; starting it again in 1 s"]


# Answers as soon as there is the file.
LATE_WEB = """
import http.server, pathlib, sys, time
while not pathlib.Path(sys.argv[1]).exists():
    time.sleep(0.01)
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
http.server.HTTPServer(("127.0.0.1", int(sys.argv[2])), Handler).serve_forever()
"""


def test_a_web_that_takes_long_is_waited_for(free_port, tmp_path):
    go = tmp_path / "go"
    command = [sys.executable, "-c", LATE_WEB, str(go), str(free_port)]
    supervisor, said = Watched([Program("web", command)]), []

    def say(text):
        said.append(text)
        go.touch()

    async def wait_and_stop():
        await wait_for_web(free_port, supervisor, say, starting_s=0.1)
        supervisor.stop()

    run(supervisor.run(wait_and_stop()))
    assert "slow, or busy" in said[0]


def test_a_web_that_ended_is_given_up_with_what_it_said_above(free_port):
    supervisor = Watched([python("web", "exit('no such module')")])
    waiting = wait_for_web(free_port, supervisor, supervisor.said.append, starting_s=0.1)
    with pytest.raises(CannotStart, match="what it said is above"):
        run(supervisor.run(waiting))
    assert "web: no such module" in supervisor.said


def test_one_that_will_not_stop_is_killed_with_all_it_started():
    sleep = f"{STUBBORN}print('up'); time.sleep(61.5)"
    code = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {sleep!r}]); {sleep}"
    supervisor = Watched([python("one", code)], stop_after="one: up", grace_s=0.5)
    started = time.monotonic()
    run(supervisor.run())
    assert time.monotonic() - started < 60, "It was waited for until it ended by itself."

    def is_left(process):
        return "61.5" in " ".join(process.info["cmdline"] or [])

    assert not [p for p in psutil.process_iter(["cmdline"]) if is_left(p)]


def test_a_program_is_asked_to_end_by_its_own_signal():
    code = "import signal; print('up'); print(signal.sigwait({signal.SIGQUIT, signal.SIGTERM}))"
    block = "import signal; signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGQUIT}); "
    supervisor = Watched(
        [python("one", block + code, end_with=signal.SIGQUIT)], stop_after="one: up"
    )
    run(supervisor.run())
    assert supervisor.said[-1] == f"one: {int(signal.SIGQUIT)}"


def test_an_error_beside_the_programs_stops_them_and_is_passed_on():
    supervisor = Watched([python("one", "input()"), python("two", "import time; time.sleep(60)")])

    async def fail():
        raise LookupError("no such door")

    with pytest.raises(LookupError, match="no such door"):
        run(supervisor.run(fail()))


def test_a_log_is_followed_from_its_end_even_if_it_is_cut(tmp_path):
    log = tmp_path / "a.log"
    log.write_text("long ago\n")
    idle = python("one", "import time; time.sleep(60)")
    supervisor = Watched([idle], {"log": log}, stop_after="log: anew")

    async def write():
        await asyncio.sleep(0.1)
        with log.open("a") as file:
            file.write("first\nhalf a ")
            file.flush()
            await asyncio.sleep(0.7)
            file.write("line\n")
        await asyncio.sleep(0.7)
        log.write_text("anew\n")

    run(supervisor.run(write()))
    assert supervisor.said == ["log: first", "log: half a line", "log: anew"]


@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="Only Linux tells of a parent's end."
)
@pytest.mark.parametrize("deaf", ["", STUBBORN])
def test_programs_end_with_a_supervisor_that_is_killed(deaf):
    """Also those that do not listen: one that is just starting may miss the signal to end."""
    mark = f"62.5{len(deaf)}"
    program = f"{deaf}import time; print('up', flush=True); time.sleep({mark})"
    code = (
        "import asyncio, functools, sys\n"
        "from config.supervisor import Program, Supervisor\n"
        f"program = [sys.executable, '-c', {program!r}]\n"
        "say = functools.partial(print, flush=True)\n"
        "asyncio.run(Supervisor([Program('one', program)], {}, say, grace_s=0.5).run())"
    )
    parent = psutil.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert parent.stdout.readline() == "one | up\n"
    (child,) = [each for each in parent.children() if mark in " ".join(each.cmdline())]
    parent.kill()
    parent.communicate()
    assert wait_until(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE, 10)
