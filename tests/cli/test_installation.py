"""Where an installed Loci keeps its data, and packages of the same name."""

from __future__ import annotations

import ast
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


def texts_of(path):
    """The strings of a module, without its docstrings."""
    tree = ast.parse(path.read_text())
    said = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in said:
            yield node.value


def test_no_message_names_a_program_that_an_installed_loci_lacks():
    """`settings.MANAGE` and its like name the one that is there."""
    modules = [
        path
        for name in (*installation.PACKAGES, "locipalace")
        for path in (PROJECT / name).rglob("*.py")
        if path.relative_to(PROJECT).parts[0] != "isolation"  # Reasons for programmers.
    ]
    assert len(modules) > 100
    assert [str(path) for path in modules for text in texts_of(path) if "`manage.py " in text] == []
