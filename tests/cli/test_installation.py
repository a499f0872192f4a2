"""Where an installed Loci keeps its data, and packages of the same name."""

from __future__ import annotations

import subprocess
import sys

import pytest

from locipalace import installation
from tests.config.conftest import PROJECT


@pytest.mark.skipif(sys.platform == "darwin", reason="XDG's folders are Linux's.")
@pytest.mark.parametrize(
    ("given", "folder"),
    [("", ".local/share/locipalace"), ("relative", ".local/share/locipalace")],
)
def test_data_go_to_the_users_folder(monkeypatch, tmp_path, given, folder):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", given)
    assert installation.data_folder() == tmp_path / folder


@pytest.mark.skipif(sys.platform == "darwin", reason="XDG's folders are Linux's.")
def test_data_go_where_xdg_says(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert installation.data_folder() == tmp_path / "locipalace"


@pytest.mark.parametrize("name", ["config", "chat"])
def test_a_program_with_a_module_of_our_name_gets_a_sentence(tmp_path, name):
    (tmp_path / f"{name}.py").write_text("")
    code = (
        f"import sys; sys.path += [{str(PROJECT)!r}]; from locipalace import installation\n"
        f"sys.path.remove({str(PROJECT)!r})\n"
        "try: installation.enter_beside_others()\n"
        "except installation.NameClash as error: print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert f"a module named {name!r}" in done.stdout
    assert "locipalace.client" in done.stdout
