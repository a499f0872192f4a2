"""The ways to an export: a page, the API, the terminal; and the file that cannot be written."""

from __future__ import annotations

import asyncio
import io
import stat
import zipfile

import pytest
from django.core.handlers.asgi import ASGIRequest
from django.core.management import CommandError, call_command
from django.db import connections
from django.urls import reverse

from palace.models import Drawer, Palace
from palace.transfer.export import download
from tests.api.rest.conftest import client_of
from tests.factories import DrawerFactory, RoomFactory, WingFactory
from tests.transfer.palaces import lines_of


def furnish(palace, text):
    room = RoomFactory(wing=WingFactory(palace=palace), title="Violins")
    return DrawerFactory(room=room, closet=None, text=text)


def texts_in(content):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return archive.read("data/drawers.jsonl").decode()


def test_the_page_counts_what_there_is_and_sends_it(client, palace, bob):
    furnish(palace, "By Guarneri.")
    furnish(Palace.objects.own(bob), "By Goffriller.")
    client.force_login(palace.owner)
    page = client.get(reverse("data_settings"))
    assert "1 drawer in 1 room" in page.text
    assert "Download your palace" in page.text
    response = client.post(reverse("export_palace"))
    assert response.headers["Content-Type"] == "application/zip"
    assert response.headers["Content-Disposition"].startswith('attachment; filename="loci-palace-')
    said = texts_in(b"".join(response))
    assert "By Guarneri." in said
    assert "Goffriller" not in said


def test_a_link_cannot_start_it_and_nobody_signed_out_gets_it(client, palace):
    assert client.post(reverse("export_palace")).status_code == 302
    client.force_login(palace.owner)
    assert client.get(reverse("export_palace")).status_code == 405


def test_a_program_gets_the_palace_that_it_names(alice):
    furnish(Palace.objects.create(owner=alice, subject="ada"), "By Guarneri.")
    program = client_of(alice, scopes=("read",))
    response = program.get("/v1/export?user_id=ada", headers={"Accept": "application/zip"})
    assert response.status_code == 200
    assert response.headers["Content-Type"] == "application/zip"
    assert "By Guarneri." in texts_in(b"".join(response))
    nobody = program.get("/v1/export?user_id=nobody")
    assert (nobody.status_code, nobody.json()["code"]) == (404, "not_found")
    only_writes = client_of(alice, scopes=("write",)).get("/v1/export")
    assert (only_writes.status_code, only_writes.json()["code"]) == (403, "missing_scope")


def test_the_command_writes_it_for_us_alone_and_replaces_nothing(palace, tmp_path, capsys):
    furnish(palace, "By Guarneri.")
    path = tmp_path / "out.zip"
    call_command("export_palace", path, owner="alice")
    assert lines_of(path, "drawers")[0]["text"] == "By Guarneri."
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert str(path) in capsys.readouterr().out
    with pytest.raises(CommandError, match="is there already"):
        call_command("export_palace", path, owner="alice")
    call_command("export_palace", path, owner="alice", overwrite=True)
    assert list(tmp_path.iterdir()) == [path]


def test_two_exports_into_one_file_do_not_write_into_each_other(palace, tmp_path):
    """What another export has written so far stays as it is."""
    furnish(palace, "By Guarneri.")
    path = tmp_path / "out.zip"
    path.with_name("out.zip.part").write_text("of another")
    call_command("export_palace", path, owner="alice")
    assert lines_of(path, "drawers")[0]["text"] == "By Guarneri."
    assert path.with_name("out.zip.part").read_text() == "of another"


def test_the_command_says_what_it_cannot_do(palace, tmp_path):
    with pytest.raises(CommandError, match="keeps no palace for 'ada'"):
        call_command("export_palace", tmp_path / "a.zip", owner="alice", subject="ada")
    with pytest.raises(CommandError, match="cannot be written: No such file or directory"):
        call_command("export_palace", tmp_path / "gone" / "a.zip", owner="alice")


@pytest.mark.django_db(transaction=True)
def test_under_an_asynchronous_server_it_is_sent_piece_by_piece(django_user_model):
    palace = Palace.objects.own(django_user_model.objects.create_user("alice"))
    furnish(palace, "By Guarneri.")
    for _ in range(40):
        furnish(palace, "".join(map(chr, range(200, 9000))))
    request = ASGIRequest({"type": "http", "method": "GET", "path": "/"}, io.BytesIO())

    async def taken(most):
        pieces, content = [], aiter(download(request, palace).streaming_content)
        async for piece in content:
            pieces.append(piece)
            if len(pieces) == most:
                await content.aclose()
                break
        return pieces

    pieces = asyncio.run(taken(None))
    assert len(pieces) > 2
    assert "By Guarneri." in texts_in(b"".join(pieces))
    assert len(asyncio.run(taken(1))) == 1
    # A client that went away holds nothing: the palace can be written to, and dropped, at once.
    assert Drawer.objects.filter(palace=palace).delete()[0] == 41
    assert connections["default"].connection is not None
