"""`locipalace connect`: the change is shown, written and taken back; nothing else is touched."""

from __future__ import annotations

import json
import tomllib

import pytest

from locipalace.cli.clients import CLIENTS
from locipalace.cli.main import main

JSON_CLIENTS = sorted(name for name in CLIENTS if name != "codex")


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_CONFIG_HOME", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def connect(capsys, *arguments):
    main(["connect", *arguments, "--json"])
    return json.loads(capsys.readouterr().out)


def settings_of(name):
    text = CLIENTS[name].file().read_text()
    return tomllib.loads(text) if name == "codex" else json.loads(text)


@pytest.mark.parametrize("name", sorted(CLIENTS))
def test_it_shows_first_and_writes_nothing(name, capsys):
    main(["connect", name])
    shown = capsys.readouterr().out
    assert str(CLIENTS[name].file()) in shown
    assert '"mcp"' in shown
    assert not CLIENTS[name].file().exists()


@pytest.mark.parametrize("name", sorted(CLIENTS))
def test_it_writes_the_entry_and_takes_it_out_again(name, capsys):
    written = connect(capsys, name, "--write")
    assert settings_of(name)[CLIENTS[name].servers]["loci"] == written["entry"]
    assert connect(capsys, name, "--write")["written"], "Again changes nothing."
    assert connect(capsys, name, "--undo")["removed"]
    assert "loci" not in settings_of(name).get(CLIENTS[name].servers, {})
    assert not connect(capsys, name, "--undo")["removed"]


@pytest.mark.parametrize("name", JSON_CLIENTS)
def test_what_else_is_in_the_file_stays(name, capsys):
    client = CLIENTS[name]
    before = {"theme": "dünkel", client.servers: {"other": {"command": "x", "args": ["mcp"]}}}
    client.file().parent.mkdir(parents=True, exist_ok=True)
    client.file().write_text(json.dumps(before))
    client.file().chmod(0o640)
    connect(capsys, name, "--write")
    assert settings_of(name)["theme"] == "dünkel"
    assert client.file().stat().st_mode & 0o777 == 0o640
    connect(capsys, name, "--undo")
    assert settings_of(name) == before


def test_tables_and_comments_of_toml_stay(capsys):
    before = '# Mine.\nmodel = "o9"\n\n[mcp_servers.other]\ncommand = "x"\n'
    file = CLIENTS["codex"].file()
    file.parent.mkdir()
    file.write_text(before)
    connect(capsys, "codex", "--write")
    assert file.read_text().startswith(before)
    assert set(settings_of("codex")["mcp_servers"]) == {"other", "loci"}
    connect(capsys, "codex", "--undo")
    assert file.read_text() == before


@pytest.mark.parametrize("name", sorted(CLIENTS))
@pytest.mark.parametrize("how", ["--write", "--undo"])
def test_another_server_of_this_name_is_not_touched(name, how):
    file = CLIENTS[name].file()
    file.parent.mkdir(parents=True, exist_ok=True)
    entry = {"command": "someone-elses", "args": ["serve"]}
    theirs = json.dumps({CLIENTS[name].servers: {"loci": entry}})
    if name == "codex":
        theirs = '[mcp_servers.loci]\ncommand = "someone-elses"\n'
    file.write_text(theirs)
    with pytest.raises(SystemExit, match="did not write"):
        main(["connect", name, how])
    assert file.read_text() == theirs


def test_a_file_with_comments_gets_a_sentence_and_stays(capsys):
    file = CLIENTS["vscode"].file()
    file.parent.mkdir(parents=True)
    file.write_text("{ // mine\n}")
    with pytest.raises(SystemExit, match="Add the entry by hand"):
        main(["connect", "vscode", "--write"])
    assert file.read_text() == "{ // mine\n}"


def test_data_elsewhere_are_named_in_the_entry(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("LOCI_HOME", str(tmp_path / "mine"))
    entry = connect(capsys, "codex", "--write")["entry"]
    assert entry["env"] == {"LOCI_HOME": str(tmp_path / "mine")}
    assert settings_of("codex")["mcp_servers"]["loci"] == entry
