"""The wheel, built and installed into an empty environment outside of the repository."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import site
import subprocess
import sys
from pathlib import Path

import pytest

from tests import template_database
from tests.config.conftest import PROJECT, House, as_from_a_shell
from tests.polling import wait_until

pytestmark = pytest.mark.exhaustive

SDK = """
from locipalace.sdk import Memory
print(Memory().search("Where?", user_id="ada"))
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """The installed command, beside our locked packages; nothing of the repository is there."""
    folder = tmp_path_factory.mktemp("installed")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    offline = ["--no-deps", "--no-index", "--no-build-isolation"]
    subprocess.run([*pip, "wheel", *offline, "--wheel-dir", str(folder), str(PROJECT)], check=True)
    [wheel] = folder.glob("locipalace-*.whl")
    environment = folder / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    python = environment / "bin" / "python"
    ask = [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    packages = Path(subprocess.check_output(ask, text=True).strip())
    (packages / "dependencies.pth").write_text("\n".join(site.getsitepackages()))
    install = ["--python", str(python), "install", "--no-deps", "--no-index", str(wheel)]
    subprocess.run([*pip, *install], check=True)
    return environment / "bin" / "locipalace"


@pytest.fixture
def house(tmp_path):
    """The user's data folder, with tables; and a working folder with modules of our names."""
    built = House(tmp_path / "data" / "locipalace")
    template_database.furnish(built.home)
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("LOCI_", "DJANGO_"))}
    models = str(PROJECT / ".loci" / "models")
    built.environment = clean | {"XDG_DATA_HOME": str(tmp_path / "data"), "LOCI_MODELS_DIR": models}
    built.environment |= {"HOME": str(tmp_path), "NO_COLOR": "1", "PYTHONPATH": ""}
    (tmp_path / "work").mkdir()
    for name in ("config.py", "palace.py", "chat.py"):
        (tmp_path / "work" / name).write_text("raise SystemExit('Not ours.')\n")
    yield built
    built.tear_down()


def run(house, *command, check=True, cwd=None):
    done = subprocess.run(
        command,
        env=house.environment,
        cwd=cwd or house.home.parent.parent / "work",
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert not check or done.returncode == 0, done.stderr
    return done


def test_nothing_of_it_lies_beside_other_packages(program):
    [packages] = program.parent.parent.glob("lib/python*/site-packages")
    names = {path.name.partition("-")[0] for path in packages.iterdir()}
    assert names == {"locipalace", "dependencies.pth"}


def test_its_commands_work_from_any_folder(program, house):
    found = json.loads(run(house, program, "doctor", "--json").stdout)
    assert found["data folder"]["is"] == str(house.home)
    assert run(house, program, "docs", "importing").stdout.startswith("# Importing")
    run(house, program, "add", "I moved to Lisbon.")
    answer = json.loads(run(house, program, "ask", "Where do I live?", "--json").stdout)
    assert answer["facts"][0]["text"] == "User lives in Lisbon"
    refused = run(house, program, "key", "--revoke", "loci_nothing", check=False)
    assert (refused.returncode, "`locipalace key --list`" in refused.stderr) == (1, True)
    assert house.names() == []


def test_the_sdk_works_and_refuses_modules_of_the_same_names(program, house):
    python = program.with_name("python")
    elsewhere = house.home.parent
    assert run(house, python, "-c", SDK, cwd=elsewhere).stdout == "{'results': []}\n"
    refused = run(house, python, "-c", SDK, check=False)
    assert "NameClash: Your program has a module named" in refused.stderr


def test_it_runs_all_of_loci(program, house, free_port, tmp_path):
    log = tmp_path / "log"
    with log.open("wb") as out:
        running = subprocess.Popen(
            [program, "run", "--port", str(free_port), "--no-browser"],
            env=house.environment,
            cwd=tmp_path / "work",
            stdout=out,
            stderr=subprocess.STDOUT,
            preexec_fn=as_from_a_shell,
        )
    with contextlib.ExitStack() as stack:
        stack.callback(running.kill)
        ready = "Ctrl-C stops everything."
        assert wait_until(lambda: ready in log.read_text() or running.poll() is not None, 180)
        assert running.poll() is None, log.read_text()
        for path in ("/sign-in/", "/static/css/base.css"):
            connection = http.client.HTTPConnection("127.0.0.1", free_port, timeout=90)
            connection.request("GET", path)
            assert connection.getresponse().status == 200
            connection.close()
        address = f"http://127.0.0.1:{free_port}/"
        assert address in run(house, program).stdout
        running.terminate()
        assert running.wait(120) == 0, log.read_text()
    assert wait_until(lambda: house.names() == [], 30), house.names()
