"""`locipalace connect`: the change is shown, written and taken back; nothing else is touched."""

from __future__ import annotations

import json
import shlex
import tomllib

import pytest
from django.contrib.auth.models import User

from locipalace.cli import json_text
from locipalace.cli.clients import AGENTS, CLIENTS
from locipalace.cli.main import main
from settings_app.api_keys import ApiKey, key_of
from tests.config.conftest import PROJECT

JSON_CLIENTS = sorted(name for name in CLIENTS if name != "codex")
PROFILE = "client.json"


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """A home folder, in which Loci has a key for assistants."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_CONFIG_HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR", "LOCI_URL", "LOCI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    data = tmp_path / "data"
    monkeypatch.setenv("LOCI_HOME", str(data))
    data.mkdir()
    (data / PROFILE).write_text('{"key": "loci_made_before"}')
    return tmp_path


def connect(capsys, *arguments):
    main(["connect", *arguments, "--json"])
    return json.loads(capsys.readouterr().out)


def settings_of(name):
    text = CLIENTS[name].file().read_text()
    return tomllib.loads(text) if name == "codex" else json.loads(text)


def hooks_of(name):
    return json.loads(CLIENTS[name].hooks.file().read_text()).get("hooks", {})


def put(file, text):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


@pytest.mark.parametrize("name", sorted(CLIENTS))
def test_it_shows_first_and_writes_nothing(name, capsys):
    main(["connect", name])
    shown = capsys.readouterr().out
    assert str(CLIENTS[name].file()) in shown
    assert '"mcp"' in shown
    assert (f"hook {name}" in shown) == (name in AGENTS)
    assert "Add --yes" in shown
    assert not connect(capsys, name)["written"]
    assert not CLIENTS[name].file().exists()


@pytest.mark.parametrize(("answer", "is_written"), [("", True), ("y", True), ("n", False)])
def test_it_asks_in_a_terminal(answer, is_written, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("builtins.input", lambda _: answer)
    main(["connect", "cursor"])
    assert CLIENTS["cursor"].file().exists() == is_written


@pytest.mark.parametrize("name", sorted(CLIENTS))
def test_it_writes_the_entry_and_takes_it_out_again(name, capsys):
    written = connect(capsys, name, "--yes")
    assert settings_of(name)[CLIENTS[name].servers]["loci"] == written["entry"]
    text = CLIENTS[name].file().read_text()
    assert connect(capsys, name, "--yes")["written"]
    assert CLIENTS[name].file().read_text() == text, "Again changes nothing."
    assert connect(capsys, name, "--undo", "--yes")["removed"]
    assert not CLIENTS[name].file().exists(), "It was made for this."
    assert not connect(capsys, name, "--undo")["removed"]


@pytest.mark.parametrize("name", AGENTS)
def test_an_agent_gets_its_hooks(name, capsys):
    hook = connect(capsys, name, "--yes")["hook"]
    *program, word, agent = shlex.split(hook)
    assert (word, agent) == ("hook", name)
    assert program[-1] == str(PROJECT / "locipalace")
    hooks = CLIENTS[name].hooks
    for event in hooks.events:
        [found] = hooks_of(name)[event]
        handler = {"command": hook, "timeout": 15 * hooks.second}
        grouped = {"hooks": [{"type": "command", **handler}]}
        assert found == (grouped if hooks.version is None else handler)
    connect(capsys, name, "--yes", "--no-hooks")
    assert hooks_of(name) == {}


def test_hooks_of_cursor_stand_beside_those_of_others(capsys):
    file = CLIENTS["cursor"].hooks.file()
    before = {"version": 1, "hooks": {"stop": [{"command": "notify hook cursor"}]}}
    put(file, json.dumps(before))
    connect(capsys, "cursor", "--yes")
    theirs, ours = hooks_of("cursor")["stop"]
    assert (theirs, ours["timeout"]) == (before["hooks"]["stop"][0], 15)
    connect(capsys, "cursor", "--undo")
    assert json.loads(file.read_text()) == before


def test_a_file_of_hooks_that_cursor_did_not_have_says_its_version(capsys):
    connect(capsys, "cursor", "--yes")
    assert json.loads(CLIENTS["cursor"].hooks.file().read_text())["version"] == 1
    connect(capsys, "cursor", "--undo")
    assert not CLIENTS["cursor"].hooks.file().exists()


def test_a_linked_file_that_is_left_empty_stays(home, capsys):
    real, linked = home / "dotfiles.json", CLIENTS["cursor"].file()
    put(linked, "")
    linked.unlink()
    linked.symlink_to(real)
    connect(capsys, "cursor", "--yes")
    connect(capsys, "cursor", "--undo")
    assert linked.is_symlink()
    assert json.loads(real.read_text()) == {}


@pytest.mark.parametrize("name", sorted({*AGENTS} - {"cursor"}))
def test_hooks_of_others_stay(name, capsys):
    hooks = CLIENTS[name].hooks
    event = hooks.events[1]
    theirs = {"type": "command", "command": "notify --hook mine"}
    beside = {"matcher": "", "hooks": [theirs, {"type": "command", "command": "x"}]}
    before = {"theme": "dark", "hooks": {"Other": [beside], event: [beside]}}
    put(hooks.file(), json.dumps(before))
    connect(capsys, name, "--yes")
    assert hooks_of(name)[event][0] == beside
    ours = hooks_of(name)[event][1]["hooks"][0]
    # Somebody has moved ours beside theirs.
    moved = json.loads(hooks.file().read_text())
    moved["hooks"][event] = [{**beside, "hooks": [*beside["hooks"], ours]}]
    put(hooks.file(), json.dumps(moved))
    connect(capsys, name, "--undo")
    assert json.loads(hooks.file().read_text()) == before


@pytest.mark.parametrize("theme", ["dünkel", "dünkel cut \ud83d"])
@pytest.mark.parametrize("form", [{}, {"indent": 2}, {"indent": "\t", "ensure_ascii": False}])
@pytest.mark.parametrize("name", JSON_CLIENTS)
def test_what_else_is_in_the_file_stays(name, form, theme, capsys):
    client = CLIENTS[name]
    before = {"theme": theme, client.servers: {"other": {"command": "x", "args": ["mcp"]}}}
    text = json.dumps(before, **form if theme.isprintable() else {**form, "ensure_ascii": True})
    put(client.file(), text)
    client.file().chmod(0o640)
    connect(capsys, name, "--yes")
    assert settings_of(name)["theme"] == before["theme"]
    assert client.file().stat().st_mode & 0o777 == 0o640
    connect(capsys, name, "--undo")
    assert settings_of(name) == before
    if form:
        assert client.file().read_text() == text, "To the byte."


COMMENTED = """// Servers of mine.
{
    "inputs": [],  // "none": yet
    "servers": {
        /* The http://docs one. */
        "docs": {"url": "http://docs.example.org"}, // keep
        "other": {"command": "x", "args": ["// no comment", "}"],},
        // "old": {},
    },
}
"""


def test_comments_of_json_stay(capsys):
    file = CLIENTS["vscode"].file()
    put(file, COMMENTED)
    entry = connect(capsys, "vscode", "--yes")["entry"]
    written = file.read_text()
    assert json_text.read(written)["servers"]["loci"] == entry
    gone = [line for line in COMMENTED.splitlines() if line not in written.splitlines()]
    assert gone == []
    connect(capsys, "vscode", "--undo")
    assert file.read_text() == COMMENTED


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("name", ["vscode", "codex", "gemini"])
def test_line_ends_and_a_byte_order_mark_stay(name, mark, capsys):
    """As Notepad and tools of Windows write them."""
    client = CLIENTS[name]
    text = {"vscode": COMMENTED, "codex": '# Mine.\nmodel = "o9"\n'}.get(
        name, '{\n  "hooks": {"Other": []}\n}\n'
    )
    before = f"{mark}{text}".replace("\n", "\r\n").encode()
    client.file().parent.mkdir(parents=True, exist_ok=True)
    client.file().write_bytes(before)
    connect(capsys, name, "--yes")
    written = client.file().read_bytes()
    assert b"loci" in written
    assert written.count(b"\n") == written.count(b"\r\n")
    assert written.count("\ufeff".encode()) == bool(mark)
    connect(capsys, name, "--undo")
    assert client.file().read_bytes() == before


@pytest.mark.parametrize("name", ["vscode", "codex", "gemini"])
def test_line_ends_of_two_kinds_stay(name, capsys):
    """Hardly anybody has them; no line of theirs changes."""
    client = CLIENTS[name]
    text = '# Mine.\r\nmodel = "o9"\n' if name == "codex" else '{\r\n  "theme": "dark"\n}\r\n'
    client.file().parent.mkdir(parents=True, exist_ok=True)
    client.file().write_bytes(text.encode())
    connect(capsys, name, "--yes")
    connect(capsys, name, "--undo")
    assert client.file().read_bytes() == text.encode()


def test_comments_beside_hooks_stay(capsys):
    file = CLIENTS["gemini"].file()
    before = '{\n  // Mine.\n  "hooks": {"AfterAgent": [{"hooks": []} /* loud */]}\n}\n'
    put(file, before)
    connect(capsys, "gemini", "--yes")
    assert len(json_text.read(file.read_text())["hooks"]["AfterAgent"]) == 2
    connect(capsys, "gemini", "--undo")
    assert json_text.read(file.read_text()) == json_text.read(before)
    assert "// Mine." in file.read_text()
    assert "/* loud */" in file.read_text()


def test_tables_and_comments_of_toml_stay(capsys):
    before = '# Mine.\nmodel = "o9"\n\n[mcp_servers.other]\ncommand = "x"\n'
    file = CLIENTS["codex"].file()
    put(file, before)
    connect(capsys, "codex", "--yes")
    assert file.read_text().startswith(before)
    assert set(settings_of("codex")["mcp_servers"]) == {"other", "loci"}
    connect(capsys, "codex", "--undo")
    assert file.read_text() == before


def test_a_table_that_another_program_wrote_right_behind_ours_stays(capsys):
    file = CLIENTS["codex"].file()
    put(file, 'model = "o9"\n')
    connect(capsys, "codex", "--yes")
    put(file, file.read_text() + '[projects."/home/me/ferry"]\ntrust_level = "trusted"\n')
    for option in ("--yes", "--no-hooks", "--undo"):
        connect(capsys, "codex", "--yes", option)
        assert settings_of("codex")["projects"] == {"/home/me/ferry": {"trust_level": "trusted"}}
        assert settings_of("codex")["model"] == "o9"


def test_servers_in_one_line_of_toml_are_refused_as_no_table_can_follow(capsys):
    file = CLIENTS["codex"].file()
    before = 'mcp_servers = { other = { command = "x" } }\n'
    put(file, before)
    with pytest.raises(SystemExit, match=r"in one line.*by hand"):
        main(["connect", "codex", "--yes"])
    assert file.read_text() == before


@pytest.mark.parametrize("name", sorted(CLIENTS))
@pytest.mark.parametrize("how", ["--yes", "--undo"])
def test_another_server_of_this_name_is_not_touched(name, how):
    file = CLIENTS[name].file()
    entry = {"command": "someone-elses", "args": ["serve"]}
    theirs = json.dumps({CLIENTS[name].servers: {"loci": entry}})
    if name == "codex":
        theirs = '[mcp_servers.loci]\ncommand = "someone-elses"\n'
    put(file, theirs)
    with pytest.raises(SystemExit, match="did not write"):
        main(["connect", name, how])
    assert file.read_text() == theirs


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{ /* mine }", "change it by hand"),
        ('{"servers": NaN}', "change it by hand"),
        ('{"servers": {"a": {}, "a": {}}}', "'a' is in one object twice"),
        ('{"servers": {,}}', "change it by hand"),
        ("[" * 100_000, "change it by hand"),
        ('{"servers": []}', "no list of servers"),
        ("[]", "no JSON object"),
    ],
)
def test_a_file_that_cannot_be_read_gets_a_sentence_and_stays(text, sentence):
    file = CLIENTS["vscode"].file()
    put(file, text)
    with pytest.raises(SystemExit, match=sentence):
        main(["connect", "vscode", "--yes"])
    assert file.read_text() == text


def test_the_entry_for_a_file_that_cannot_be_read_is_shown(capsys):
    put(CLIENTS["claude-code"].file(), "{ /* mine }")
    shown = connect(capsys, "claude-code")
    assert (shown["entry"]["args"][-1], shown["written"]) == ("mcp", False)
    assert shown["hook"].endswith("hook claude-code")
    assert "--json without --yes shows the entry" in shown["problem"]


def test_undo_leaves_servers_that_are_taken_out_by_a_comment():
    mine = '// "old": {"command": "mine"}'
    file = CLIENTS["vscode"].file()
    put(file, f'{{"servers": {{\n  {mine}\n}}}}')
    main(["connect", "vscode", "--yes"])
    assert '"loci"' in file.read_text()
    main(["connect", "vscode", "--undo", "--yes"])
    assert mine in file.read_text()
    assert json_text.read(file.read_text()) == {"servers": {}}


def test_undo_leaves_hooks_that_are_taken_out_by_a_comment():
    mine = '// {"hooks": [{"type": "command", "command": "mine"}]}'
    file = CLIENTS["claude-code"].hooks.file()
    put(file, f'{{"hooks": {{"Stop": [\n  {mine}\n]}}}}')
    main(["connect", "claude-code", "--yes"])
    assert "hook claude-code" in file.read_text()
    main(["connect", "claude-code", "--undo", "--yes"])
    assert mine in file.read_text()


@pytest.mark.parametrize("text", ["{ nonsense", '{"hooks": []}', '{"hooks": {"Stop": {}}}'])
def test_nothing_is_written_where_the_hooks_cannot_be(text):
    put(CLIENTS["claude-code"].hooks.file(), text)
    with pytest.raises(SystemExit, match=r"settings\.json"):
        main(["connect", "claude-code", "--yes"])
    assert not CLIENTS["claude-code"].file().exists()


def test_a_file_in_another_encoding_is_refused():
    file = CLIENTS["cursor"].file()
    put(file, "")
    file.write_bytes(b'{"a": "\xff"}')
    with pytest.raises(SystemExit, match="not UTF-8"):
        main(["connect", "cursor", "--yes"])


def test_data_elsewhere_are_named_in_the_entry(capsys, home):
    written = connect(capsys, "codex", "--yes")
    assert written["entry"]["env"] == {"LOCI_HOME": str(home / "data")}
    assert settings_of("codex")["mcp_servers"]["loci"] == written["entry"]
    assert written["hook"].startswith(f"env LOCI_HOME={home}")


def test_a_link_to_the_file_stays_a_link(capsys, home):
    real = home / "dotfiles.json"
    put(real, "{}")
    file = CLIENTS["cursor"].file()
    file.parent.mkdir()
    file.symlink_to(real)
    connect(capsys, "cursor", "--yes")
    assert file.is_symlink()
    assert "loci" in real.read_text()


def key_kept(home):
    return json.loads((home / "data" / PROFILE).read_text())


def test_a_key_is_made_once(home, capsys, transactional_db):
    User.objects.create_superuser("owner")
    (home / "data" / PROFILE).unlink()
    connect(capsys, "cursor", "--yes")
    key = key_of(key_kept(home)["key"])
    assert (sorted(key.scopes), key.subject) == (["read", "write"], "")
    assert (home / "data" / PROFILE).stat().st_mode & 0o777 == 0o600
    connect(capsys, "vscode", "--yes")
    assert ApiKey.objects.count() == 1
    connect(capsys, "vscode", "--yes", "--new-key")
    assert key_of(key_kept(home)["key"]) != key


@pytest.mark.parametrize("text", ["{", '["loci_made_before"]'])
def test_a_broken_profile_gets_a_sentence(home, capsys, text):
    (home / "data" / PROFILE).write_text(text)
    with pytest.raises(SystemExit, match=r"client\.json .* Delete it and connect again"):
        connect(capsys, "cursor", "--yes")


def test_a_key_of_another_server_is_taken_over(home, capsys, monkeypatch):
    monkeypatch.setenv("LOCI_URL", "https://loci.example.org")
    with pytest.raises(SystemExit, match="no LOCI_API_KEY"):
        main(["connect", "cursor", "--yes"])
    monkeypatch.setenv("LOCI_API_KEY", "loci_theirs")
    connect(capsys, "cursor", "--yes")
    assert key_kept(home) == {"url": "https://loci.example.org", "key": "loci_theirs"}
    assert "loci_theirs" not in CLIENTS["cursor"].file().read_text()
