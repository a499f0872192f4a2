from __future__ import annotations

import pytest
from django.conf import settings

FILES = sorted((settings.BASE_DIR / "static").rglob("*.*"), key=str)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_static_files_are_served_whole_by_the_web_server_itself(client, path):
    response = client.get(f"/static/{path.relative_to(settings.BASE_DIR / 'static')}")
    assert response.status_code == 200
    assert not response.streaming
    assert response.content == path.read_bytes()
    assert "max-age" in response["Cache-Control"]


def test_a_static_file_that_has_not_changed_is_not_sent_again(client):
    address = f"/static/{FILES[0].relative_to(settings.BASE_DIR / 'static')}"
    seen = client.get(address)["Last-Modified"]
    again = client.get(address, headers={"If-Modified-Since": seen})
    assert (again.status_code, again.content) == (304, b"")


def test_nothing_beside_the_static_files_can_be_reached(client, db):
    for path in ("../manage.py", "..%2fmanage.py", "%2e%2e/manage.py"):
        assert client.get(f"/static/{path}").status_code in {302, 404}
