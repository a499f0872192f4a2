"""The SDK's own OAuth client goes all the way: it finds, registers, asks, recalls, refreshes."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from api.models import ConnectedApp, RegisteredApp, Token
from palace.models import Drawer, Palace
from settings_app.api_keys import AuditLine
from tests.api.oauth.conftest import App, DeniedError

SAID = "My sister Ada plays a cello by Goffriller."


def done(result):
    assert not result.is_error, result.content
    return result.structured_content


def test_an_app_connects_remembers_recalls_refreshes_and_is_ended(door, owner, browser, endpoints):
    app = App(door.url, browser)

    async def talk(client):
        listed = {tool.name for tool in (await client.list_tools()).tools}
        assert {"recall", "save_memory"} <= listed
        done(await client.call_tool("save_memory", {"content": SAID}))
        recalled = done(await client.call_tool("recall", {"query": "What does Ada play?"}))
        assert "Goffriller" in recalled["context"]

    app.run(talk)
    assert Drawer.objects.get().palace == Palace.objects.own(owner)
    assert len(browser.pages) == 1
    connection = ConnectedApp.objects.get()
    assert (connection.owner, connection.resource) == (owner, door.url)
    assert connection.key.last_used_at is not None
    line = AuditLine.objects.get()
    assert (line.path, line.status, line.key) == ("save_memory", 200, connection.key)

    first = app.storage.tokens
    assert first.scope == "read write"
    app.provider.context.token_expiry_time = 1
    app.run(talk)
    second = app.storage.tokens
    assert second.access_token != first.access_token
    assert second.refresh_token != first.refresh_token
    # Without asking its user again.
    assert len(browser.pages) == 1
    assert RegisteredApp.objects.count() == 1

    client_id = app.storage.client.client_id
    assert endpoints.revoke(client_id, second.refresh_token).status_code == 200
    for token in (first.access_token, second.access_token):
        assert endpoints.call(token).status_code == 401
    assert endpoints.refresh(client_id, second.refresh_token).json()["error"] == "invalid_grant"


def test_an_app_that_is_started_again_goes_on_with_what_it_kept(door, browser):
    app = App(door.url, browser)

    async def look(client):
        return await client.list_tools()

    app.run(look)
    later = App(door.url, browser)
    later.storage.tokens, later.storage.client = app.storage.tokens, app.storage.client
    later.run(look)
    assert len(browser.pages) == 1


def test_an_access_token_ends_and_the_app_asks_again(door, browser, endpoints):
    app = App(door.url, browser)

    async def look(client):
        return await client.list_tools()

    app.run(look)
    Token.objects.filter(kind="access").update(expires_at=timezone.now() - timedelta(seconds=1))
    assert endpoints.call(app.storage.tokens.access_token).status_code == 401
    app.run(look)
    assert len(browser.pages) == 2


def test_what_the_user_unticked_is_not_there(door, browser):
    app = App(door.url, browser, scopes=["read"])

    async def look(client):
        listed = await client.list_tools()
        assert {tool.annotations.read_only_hint for tool in listed.tools} == {True}
        refused = await client.call_tool("save_memory", {"content": SAID})
        assert refused.is_error
        assert "may not write" in refused.content[0].text

    app.run(look)
    assert app.storage.tokens.scope == "read"
    assert not Drawer.objects.exists()


@pytest.mark.parametrize(
    ("palaces", "subject", "opens"),
    [
        pytest.param("own", "", [""], marks=pytest.mark.exhaustive),
        ("one", "ada", ["ada"]),
        pytest.param("all", "", ["", "ada", "bob"], marks=pytest.mark.exhaustive),
    ],
)
def test_the_user_chooses_the_palaces(door, owner, browser, palaces, subject, opens):
    app = App(door.url, browser, palaces=palaces, subject=subject)

    async def save(client):
        for name in ("", "ada", "bob"):
            whose = {"user_id": name} if name else {}
            result = await client.call_tool("save_memory", {"content": SAID, **whose})
            is_own = not name and palaces == "one"
            assert result.is_error == (name not in opens and not is_own), (name, result.content)

    app.run(save)
    kept = Drawer.objects.values_list("room__palace__subject", flat=True)
    assert sorted(set(kept)) == opens


def test_a_user_who_denies_gives_nothing(door, browser):
    app = App(door.url, browser, do="deny")

    async def look(client):
        return await client.list_tools()

    with pytest.raises((DeniedError, ExceptionGroup)):
        app.run(look)
    assert "error=access_denied" in app.location
    assert "code=" not in app.location
    assert not ConnectedApp.objects.exists()


def test_an_app_without_refresh_tokens_gets_none(door, browser):
    class Forgetful(App):
        grant_types = ("authorization_code",)

    app = Forgetful(door.url, browser)

    async def look(client):
        return await client.list_tools()

    app.run(look)
    assert app.storage.tokens.refresh_token is None
    key = ConnectedApp.objects.get().key
    assert key.expires_at < timezone.now() + timedelta(hours=2)


def test_two_apps_of_two_people_stay_apart(door, browser, strangers):
    mine, theirs = App(door.url, browser), App(door.url, strangers)

    async def save(client):
        done(await client.call_tool("save_memory", {"content": SAID}))

    async def recall(client):
        return done(await client.call_tool("search", {"query": "What does Ada play?"}))

    mine.run(save)
    assert theirs.run(recall)["results"] == []
    assert [hit["content"] for hit in mine.run(recall)["results"]] == [SAID]
