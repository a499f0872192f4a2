"""`locipalace`: what people type, on this process's services."""

from __future__ import annotations

import ast
import io
import json
import re
import shutil
import subprocess
import sys
import webbrowser

import pytest
from django.contrib.auth.models import User

from chat.prompt import NOTHING_FITS
from config.management.commands.run import Command, _open
from locipalace import __version__, installation
from locipalace.cli.arguments import ENTRIES, parser
from locipalace.cli.main import PASSED, main
from palace.models import Palace
from tests.config.conftest import PROJECT
from tests.polling import wait_until


@pytest.fixture
def owner(transactional_db):
    return User.objects.create_superuser("owner")


def run(capsys, *arguments):
    main(arguments)
    return capsys.readouterr().out


def run_json(capsys, *arguments):
    return json.loads(run(capsys, *arguments, "--json"))


def test_what_is_added_is_found_and_answered(owner, capsys):
    [event] = run_json(capsys, "add", "I moved to Lisbon.")["results"]
    assert event["new_memory"] == "User lives in Lisbon"
    answer = run_json(capsys, "ask", "Where do I live?")
    assert answer["facts"][0]["text"] == "User lives in Lisbon"
    assert answer["quotes"][0]["text"] == "I moved to Lisbon."
    assert answer["answer"] is None
    assert "No language model is set" in answer["note"]
    [hit] = run_json(capsys, "search", "Where do I live?")["hits"]
    assert hit["text"] == "I moved to Lisbon."
    assert "“I moved to Lisbon.”" in run(capsys, "search", "Where do I live?")
    assert run(capsys, "ask", "Where do I live?").startswith("You live in Lisbon")


def test_an_answer_of_quotes_alone_has_no_empty_line_at_first(owner, capsys):
    run_json(capsys, "add", "The ferry leaves from pier 3.")
    assert run(capsys, "ask", "Which pier?").startswith("“The ferry leaves from pier 3.”")


def test_a_fact_that_is_about_something_else_is_no_answer(owner, capsys):
    run_json(capsys, "add", "I moved to Lisbon.")
    assert run(capsys, "ask", "Who is my dentist?") == f"{NOTHING_FITS}\n"


def test_an_import_and_an_export_say_in_json_what_they_did(owner, capsys, tmp_path):
    line = {"id": "c", "messages": [{"role": "user", "text": "Salt is on the left."}]}
    file = tmp_path / "talk.jsonl"
    file.write_text(json.dumps(line) + "\n")
    imported = run_json(capsys, "import", str(file))
    assert imported["receipt"]["stored"] == 1
    assert imported["preview"]["messages"] == 1
    out = tmp_path / "out.zip"
    assert run_json(capsys, "export", str(out)) == {"file": str(out), "bytes": out.stat().st_size}


def test_a_key_is_printed_listed_and_revoked(owner, capsys):
    made = run_json(capsys, "key", "--name", "my agent", "--scope", "read")
    [listed] = run_json(capsys, "key", "--list")
    assert made["key"].startswith(listed["start"])
    assert (listed["name"], listed["scopes"], listed["state"]) == ("my agent", ["read"], "active")
    revoked = run_json(capsys, "key", "--revoke", made["start"])
    assert (revoked["start"], revoked["state"]) == (made["start"], "revoked")
    assert run_json(capsys, "key", "--list") == [revoked]


def test_an_error_is_a_sentence_and_a_status(owner, capsys, tmp_path):
    with pytest.raises(SystemExit) as ended:
        main(["import", str(tmp_path / "nothing.zip"), "--yes"])
    assert ended.value.code == 1
    said = capsys.readouterr().err
    assert said.startswith("Loci: ")
    assert "nothing.zip" in said


def test_an_empty_text_is_refused(owner, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO(" \n"))
    with pytest.raises(SystemExit):
        main(["add"])
    assert "nothing to remember" in capsys.readouterr().err


def test_only_a_desktops_terminal_opens_the_browser(monkeypatch):
    for name in ("SSH_CONNECTION", "CI", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DISPLAY", ":0")
    assert PASSED["run"](["--port", "8001"]) == ["--port", "8001"], "This is no terminal."
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert PASSED["run"]([]) == ["--browser"]
    assert PASSED["run"](["--no-browser"]) == []
    monkeypatch.setenv("SSH_CONNECTION", "1")
    assert PASSED["run"]([]) == []
    monkeypatch.setenv("BROWSER", "/opt/editor/open")
    assert PASSED["run"]([]) == ["--browser"]
    for none in (" ", "/usr/bin/w3m %s"):
        monkeypatch.setenv("BROWSER", none)
        assert PASSED["run"]([]) == []


def test_the_browser_is_given_the_link(monkeypatch, tmp_path, capsys):
    opened = tmp_path / "opened"
    browser = tmp_path / "browser"
    # Under its name the file is there only when it is written.
    browser.write_text(f'#!/bin/sh\nprintf %s "$1" > {opened}.new && mv {opened}.new {opened}\n')
    browser.chmod(0o700)
    monkeypatch.setenv("BROWSER", str(browser))
    monkeypatch.setattr(webbrowser, "_tryorder", None)
    command = Command()
    command.opens_browser = True
    command._show_link("http://127.0.0.1:1/once/")
    assert wait_until(opened.is_file)
    assert opened.read_text() == "http://127.0.0.1:1/once/"
    assert "Your browser opens" in capsys.readouterr().out


@pytest.mark.parametrize("broken", ["'unbalanced %s", " "])
def test_a_browser_that_cannot_be_started_ends_nothing(monkeypatch, broken):
    monkeypatch.setattr(webbrowser, "_tryorder", None)
    monkeypatch.setenv("BROWSER", broken)
    with pytest.raises((ValueError, IndexError)):
        webbrowser.open("http://127.0.0.1:1/once/")
    _open("http://127.0.0.1:1/once/")


def test_the_documentation_is_listed_and_printed(capsys):
    listed = run(capsys, "docs")
    assert "  importing " in listed
    assert "  guides/open-webui " in listed
    page = (PROJECT / "docs" / "importing.md").read_text()
    for name in ("importing", "docs/importing.md"):
        assert run(capsys, "docs", name) == page
    with pytest.raises(SystemExit) as ended:
        main(["docs", "../README"])
    assert ended.value.code == 1
    assert "`locipalace docs` lists them" in capsys.readouterr().err


def test_a_page_that_a_message_names_can_be_read(capsys):
    """A checkout has the files, an installed Loci the command: `DOCS_PAGE` says which."""
    files = subprocess.check_output(["git", "ls-files", "*.py"], text=True, cwd=PROJECT).split()
    named = set()
    for file in files:
        if not file.startswith(("tests/", "bench/", "docs/")):
            for text in _messages(ast.parse((PROJECT / file).read_text())):
                assert not re.findall(r"docs/[\w/-]+\.md|locipalace docs [a-z]", text), (file, text)
            source = (PROJECT / file).read_text()
            named.update(re.findall(r"""DOCS_PAGE\.format\(["']([\w/-]+)["']\)""", source))
    assert {"importing", "sdk", "configuration"} <= named
    for page in named:
        assert run(capsys, "docs", page)


def _messages(tree):
    """The texts of a module that are no docstrings."""
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(each.value) for each in node.values if isinstance(each, ast.Constant))
            docstrings |= {id(each) for each in node.values}
        elif isinstance(node, ast.Constant) and id(node) not in docstrings:
            yield str(node.value)


def test_doctor_names_every_part(db, capsys):
    found = run_json(capsys, "doctor")
    assert {"data folder", "disk", "database", "embedding model"} <= found.keys()
    assert all(part["ok"] for part in found.values()), found


def test_doctor_asks_the_vector_store(db, capsys, settings, tmp_path):
    settings.VECTOR_STORE, settings.VECTOR_STORE_URL = "faiss", str(tmp_path / "vectors")
    assert "is made with" in run_json(capsys, "doctor")["facts' vectors"]["is"]
    assert not (tmp_path / "vectors").exists()
    settings.VECTOR_STORE, settings.VECTOR_STORE_URL = "qdrant", "http://127.0.0.1:1"
    with pytest.raises(SystemExit):
        main(["doctor", "--json"])
    found = json.loads(capsys.readouterr().out)["facts' vectors"]
    assert not found["ok"]
    assert "(Qdrant) does not answer" in found["is"]
    assert "LOCI_VECTOR_STORE_URL" in found["is"]


def test_doctor_says_what_is_wrong(db, capsys, settings):
    settings.EMBEDDING_DIMENSIONS = 7
    with pytest.raises(SystemExit) as ended:
        main(["doctor"])
    assert ended.value.code == 1
    assert "WRONG  embedding model" in capsys.readouterr().out


def test_without_a_command_it_says_how_things_are(capsys):
    said = run(capsys)
    assert "locipalace run" in said
    assert str(installation.home()) in said
    assert all(f"locipalace {name} " in said for name in ENTRIES)


def test_no_flags_of_django_are_taken(capsys):
    with pytest.raises(SystemExit):
        main(["doctor", "--settings", "elsewhere"])
    assert "unrecognized arguments" in capsys.readouterr().err


def test_the_image_starts_a_command_that_there_is():
    [command] = [
        line for line in (PROJECT / "Dockerfile").read_text().splitlines() if line[:3] == "CMD"
    ]
    python, module, name, *arguments = json.loads(command.removeprefix("CMD"))
    assert (python, module, name) == ("python", "-m", "locipalace")
    assert parser().parse_args(arguments).command == "run"


def test_help_and_version_load_no_django():
    code = (
        "import sys; from locipalace.cli.main import main\n"
        "try: main(['--version'])\n"
        "except SystemExit: print('django' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True, check=True
    )
    assert done.stdout.split("\n")[:2] == [f"Loci {__version__}", "False"]


def test_the_package_has_the_programs_version(settings):
    assert __version__ == settings.VERSION


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_commands_and_options(shell, capsys):
    script = run(capsys, "completion", shell)
    assert "doctor" in script
    assert "--overwrite" in script
    assert "read write admin" in script
    assert "guides/claude-code" in script


def test_fish_offers_files_only_where_a_command_takes_one(capsys):
    script = run(capsys, "completion", "fish")
    assert "'__fish_seen_subcommand_from connect' -f -a " in script
    assert "'__fish_seen_subcommand_from import' -a " in script


def test_bash_completes(capsys, tmp_path):
    script = tmp_path / "completion"
    script.write_text(run(capsys, "completion", "bash"))
    ask = (
        f"source {script}; COMP_WORDS=(locipalace conn); COMP_CWORD=1; _locipalace; "
        'echo "${COMPREPLY[@]}"; COMP_WORDS=(locipalace connect cur); COMP_CWORD=2; _locipalace; '
        'echo "${COMPREPLY[@]}"'
    )
    done = subprocess.run(["bash", "-c", ask], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["connect", "cursor"]


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed here.")
def test_fish_completes(capsys):
    ask = "source; complete -C 'locipalace conn'; complete -C 'locipalace connect cur'"
    script = run(capsys, "completion", "fish")
    done = subprocess.run(
        ["fish", "--no-config", "-c", ask],
        input=script,
        capture_output=True,
        text=True,
        check=True,
    )
    assert [line.split("\t")[0] for line in done.stdout.splitlines()] == ["connect", "cursor"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["import", "no.jsonl"], "There is no file no.jsonl"),
        (["restore", "no.backup"], "There is no file no.backup"),
        (["backup", "--drill", "no.backup"], "There is no file no.backup"),
        (["backup", "here.zip"], "is there already"),
        (["import", "here.zip", "--watch"], "--watch takes a folder"),
        (["export", "here.zip"], "is there already"),
        # The system refuses to look, as it does in somebody else's folder.
        (["export", "x" * 300], "xxx: File name too long."),
        (["backup", "x" * 300], "xxx: File name too long."),
        (["add", " "], "nothing to remember"),
        (["ask", ""], "The question is empty"),
        (["search", ""], "The query is empty"),
    ],
)
def test_a_mistake_is_named_without_a_database(arguments, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here.zip").touch()
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 1
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "--port", "99999"],
        ["search", "x", "--top-k", "0"],
        ["key", "--expires", "-1"],
        ["backup", "--to", ".", "--keep", "none"],
    ],
)
def test_a_number_that_cannot_be_is_refused(arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert f"{arguments[-1]!r} is not a" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["add", "--txet", "A note."], "--txet"),
        (["add", "A note.", "--jsno"], "--jsno (did you mean --json?)"),
        (["import", "here.zip", "--wacth"], "--wacth (did you mean --watch?)"),
        (["add", "A", "note."], "note. (several words are one argument in quotes)"),
    ],
)
def test_an_unknown_argument_is_named_with_its_commands_usage(arguments, said, capsys):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    printed = capsys.readouterr().err
    assert ended.value.code == 2
    assert f"usage: locipalace {arguments[0]} " in printed
    assert f"unrecognized arguments: {said}" in printed


@pytest.mark.parametrize("command", [("add", "The ferry leaves at nine."), ("import", "one.txt")])
def test_a_blank_subject_is_no_new_palace(owner, command, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one.txt").write_text("The ferry leaves at nine.")
    with pytest.raises(SystemExit):
        main([*command, "--subject", " "])
    assert "blank" in capsys.readouterr().err
    assert not Palace.objects.exclude(subject="").exists()


def test_a_subject_of_any_length_is_found_again(owner, capsys):
    subject = "ada" * 100
    run(capsys, "add", "--subject", subject, "I moved to Lisbon.")
    found = run_json(capsys, "ask", "--subject", subject, "Where do I live?")
    assert found["facts"][0]["text"] == "User lives in Lisbon"


def test_a_misspelt_user_is_no_new_account(owner, capsys):
    with pytest.raises(SystemExit):
        main(["add", "--user", "nobody", "The ferry leaves at nine."])
    assert "no user with the name or address 'nobody'" in capsys.readouterr().err
    assert User.objects.get() == owner
