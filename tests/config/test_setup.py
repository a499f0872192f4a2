"""The real set-up, on a project whose locks are empty and whose model is a file."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.config.conftest import PROJECT

BUILD = """
import os, pathlib, sys
models = pathlib.Path(os.environ.get("LOCI_MODELS_DIR", ".loci/models"))
models.mkdir(parents=True, exist_ok=True)
with (models / "built").open("a") as times:
    times.write("once ")
"""


class Project:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "config").mkdir(parents=True)
        shutil.copy(PROJECT / "config" / "setup.py", folder / "config")
        shutil.copy(PROJECT / "Makefile", folder)
        (folder / "manage.py").write_text(BUILD)
        for lock in ("requirements.lock", "requirements-dev.lock"):
            (folder / lock).write_text("# Nothing.\n")

    def start(self, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("LOCI_", "MAKE"))}
        return subprocess.Popen(
            ["make", *arguments],
            cwd=self.folder,
            env={**clean, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def make(self, *arguments: str, **environment: str) -> tuple[int, str]:
        process = self.start(*arguments, **environment)
        said, _ = process.communicate(timeout=300)
        return process.returncode, said


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path / "a project")


@pytest.mark.exhaustive
def test_setting_up_twice_at_once_and_again_does_everything_once(project):
    both = [project.start("setup"), project.start("setup")]
    said = [process.communicate(timeout=300)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    assert sum("Making .venv" in words for words in said) == 1, said
    assert (project.folder / ".loci" / "models" / "built").read_text() == "once "
    assert (project.folder / ".loci").stat().st_mode & 0o777 == 0o700

    assert project.make("setup") == (0, "")


@pytest.mark.exhaustive
def test_a_project_that_moved_or_has_a_new_lock_is_set_up_again(project):
    project.make("setup-dev")
    project.folder = project.folder.rename(project.folder.with_name("elsewhere"))
    status, said = project.make("setup-dev")
    assert (status, said.count("Making .venv")) == (0, 1), said
    activate = (project.folder / ".venv" / "bin" / "activate").read_text()
    assert str(project.folder) in activate

    (project.folder / "requirements-dev.lock").write_text("# Nothing still.\n")
    status, said = project.make("setup-dev")
    assert status == 0
    assert "Making .venv" not in said
    assert re.search(r"Installing 0 dev packages .*\n  done in", said)
    assert "runtime" not in said


@pytest.mark.exhaustive
def test_a_lock_that_cannot_be_installed_shows_pips_own_words(project):
    lock = "loci-has-no-such-package==1 \\\n    --hash=sha256:" + "0" * 64 + "\n"
    (project.folder / "requirements.lock").write_text(lock)
    status, said = project.make("setup", PIP_NO_INDEX="1")
    assert status != 0
    assert "No matching distribution found for loci-has-no-such-package==1" in said
    assert "it goes on where it stopped" in said
    assert "Traceback" not in said

    (project.folder / "requirements.lock").write_text("# Mended.\n")
    status, said = project.make("setup")
    assert status == 0
    assert "Making .venv" not in said, "What was done already is kept."


def test_without_a_suitable_python_it_says_what_to_do(project, tmp_path):
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("make", "sh"):
        (programs / name).symlink_to(shutil.which(name))
    # As `python3` of an old Debian: too old for what it is asked.
    old = programs / "python3"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    status, said = project.make("setup", PATH=str(programs))
    assert status != 0
    assert "no Python 3.11 or newer was found" in said


def test_a_python_that_cannot_make_virtual_environments_says_so(project, tmp_path):
    program = tmp_path / "python3"
    # A Python whose ensurepip is missing, as Debian's is without python3-venv.
    program.write_text(
        f'#!{sys.executable}\nimport runpy, sys\nsys.modules["ensurepip"] = None\n'
        'arguments = [a for a in sys.argv[1:] if a != "-I"]\n'
        'if arguments[0] == "-c": exec(arguments[1])\n'
        "else:\n    sys.argv = arguments\n"
        "    sys.path_importer_cache.clear()\n"
        "    import importlib.util\n"
        "    real = importlib.util.find_spec\n"
        '    importlib.util.find_spec = lambda name: None if name == "ensurepip" else real(name)\n'
        '    runpy.run_path(arguments[0], run_name="__main__")\n'
    )
    program.chmod(0o755)
    for name in ("make", "sh"):
        (tmp_path / name).symlink_to(shutil.which(name))
    status, said = project.make("setup", PATH=str(tmp_path))
    assert status != 0
    assert "cannot make virtual environments" in said
    assert f"python{sys.version_info[0]}.{sys.version_info[1]}-venv" in said
