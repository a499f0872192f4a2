from __future__ import annotations

import json
import resource
import stat
import subprocess
import zipfile
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import connection

from config import backup
from config.backup import BackupError, server_of, unpack
from config.backup.dump import back_up, keep_newest
from config.embedded import postgres_bin
from palace.models import Drawer, ImportJob
from palace.transfer.spools import private_folder

pytestmark = pytest.mark.django_db(transaction=True)


def test_it_holds_the_database_and_says_what_it_holds(palace, tmp_path, capsys):
    file = tmp_path / "mine.locibackup"
    call_command("backup", str(file))
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["mine.locibackup"]

    manifest = unpack(file, tmp_path / "out", "")
    assert manifest["rows"]["palace_drawer"] == Drawer.objects.count() == 2
    assert ["palace", "0001_initial"] in manifest["migrations"]
    assert manifest["loci"] == settings.VERSION
    listed = subprocess.run(
        [postgres_bin() / "pg_restore", "--list", tmp_path / "out" / "database.dump"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "TABLE DATA public palace_drawer" in listed.stdout
    said = capsys.readouterr().out
    assert settings.SECRET_KEY not in said
    assert "The signing key (secret_key) is not in it" in said


def test_two_backups_to_one_file_are_each_whole(palace, tmp_path):
    file = tmp_path / "mine.locibackup"
    server = server_of(connection.settings_dict)

    def back_up_once():
        return back_up(server, file, with_secrets=False).rows

    with ThreadPoolExecutor() as both:
        running = [both.submit(back_up_once) for _ in range(2)]
        assert len({each.result() for each in running}) == 1
    assert unpack(file, tmp_path / "out", "")["rows"]["palace_drawer"] == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine.locibackup", "out"]


def test_without_a_passphrase_the_signing_key_stays_out_unless_asked_for(palace, tmp_path, capsys):
    (plain, open_) = (tmp_path / "plain.locibackup", tmp_path / "open.locibackup")
    call_command("backup", str(plain))
    call_command("backup", str(open_), with_secrets=True)
    assert settings.SECRET_KEY.encode() not in plain.read_bytes()
    assert settings.SECRET_KEY.encode() in open_.read_bytes()


def test_with_a_passphrase_nothing_can_be_read_without_it(palace, tmp_path, capsys):
    (tmp_path / "phrase").write_text("correct horse\n")
    file = tmp_path / "sealed.locibackup"
    call_command("backup", str(file), passphrase_file=tmp_path / "phrase")
    assert not zipfile.is_zipfile(file)
    assert settings.SECRET_KEY.encode() not in file.read_bytes()
    with pytest.raises(BackupError, match=r"is encrypted\. Give its passphrase"):
        unpack(file, tmp_path, "")
    (tmp_path / "out").mkdir()
    unpack(file, tmp_path / "out", "correct horse")
    assert (tmp_path / "out/files/secret_key").read_text().strip() == settings.SECRET_KEY
    assert "correct horse" not in capsys.readouterr().out


def test_the_file_of_an_import_that_waits_comes_along(palace, tmp_path):
    spool = private_folder() / "0f8fad5b-d9cb-469f-a165-70867728950e.jsonl"
    spool.write_text("{}\n")
    ImportJob.objects.create(palace=palace, spool=spool.name)
    try:
        call_command("backup", str(tmp_path / "one.locibackup"))
    finally:
        spool.unlink()
    unpack(tmp_path / "one.locibackup", tmp_path / "out", "")
    assert (tmp_path / "out/files/imports" / spool.name).read_text() == "{}\n"


def test_a_full_disk_leaves_no_half_file(palace, tmp_path):
    file = tmp_path / "big.locibackup"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))
    try:
        with pytest.raises(CommandError, match=r"cannot be written to .*: File too large"):
            call_command("backup", str(file))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert list(tmp_path.iterdir()) == []


def test_damage_is_noticed_before_anything_is_used(palace, tmp_path):
    file = tmp_path / "one.locibackup"
    call_command("backup", str(file))
    whole = file.read_bytes()
    for data in (whole[:-20], whole[:5000] + b"\x00" + whole[5001:], b"no backup", b""):
        file.write_bytes(data)
        with pytest.raises(BackupError):
            unpack(file, tmp_path / "out", "")


def test_a_name_that_leads_elsewhere_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "evil", "w") as archive:
        archive.writestr("../evil", "x")
        entry = {"bytes": 1, "sha256": ""}
        files = {"../evil": entry, "database.dump": entry}
        manifest = {"format": "loci-backup", "format_version": 1, "files": files}
        archive.writestr("manifest.json", json.dumps(manifest))
        archive.writestr("database.dump", "x")
    (tmp_path / "out").mkdir()
    (tmp_path / "evil").rename(tmp_path / "backup")
    with pytest.raises(BackupError, match="which no Loci writes"):
        unpack(tmp_path / "backup", tmp_path / "out", "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["backup", "out"]


def test_an_older_or_missing_pg_dump_is_a_sentence(monkeypatch, tmp_path):
    with pytest.raises(BackupError, match=r"pg_dump is older \(18\), and the server is PostgreSQL"):
        backup.find_tool("pg_dump", 99)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BackupError, match=r"pg_nothing is missing.*postgresql-client-18"):
        backup.find_tool("pg_nothing", 18)


def test_a_folder_keeps_the_newest(tmp_path, palace, capsys):
    names = [f"loci-2026010{day}T000000Z.locibackup" for day in range(1, 5)]
    others = ["loci-20260101T000000Z-before-migrating.locibackup", "holiday.locibackup"]
    for name in [*names, *others]:
        (tmp_path / name).touch()
    keep_newest(tmp_path, 2)
    assert {path.name for path in tmp_path.iterdir()} == {*names[2:], *others}
    call_command("backup", to=tmp_path, keep=1)
    left = {path.name for path in tmp_path.iterdir()} - set(others)
    assert len(left) == 1
    assert not left & set(names)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "Name a FILE"),
        (["one", "--to", "two"], "Name a FILE"),
        (["one", "--keep", "2"], "--keep is for --to"),
        (["one", "--passphrase-file", "/nowhere"], "cannot be read"),
        (["/nowhere/one"], "cannot be written to /nowhere/one: No such file"),
    ],
)
def test_what_makes_no_sense_is_a_sentence(arguments, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CommandError, match=said):
        call_command("backup", *arguments)
    assert list(tmp_path.iterdir()) == []
