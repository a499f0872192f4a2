"""Registration: who may be sent a browser, what an app is shown, and what is forgotten."""

from __future__ import annotations

from datetime import timedelta

import httpx
from django.utils import timezone

from api.models import AuthorizationCode, ConnectedApp, RegisteredApp, Token
from api.oauth.grants import forget_unused
from settings_app import throttling
from settings_app.api_keys import ApiKey
from tests.api.oauth.conftest import REDIRECT, refused

WRONG_REDIRECTS = [
    "http://example.org/callback",
    "http://192.168.0.5/callback",
    "http://127.0.0.1.example.org/",
    "https://user@example.org/",
    "https://example.org/#part",
    "myapp://callback",
    "javascript:alert(1)",
    "data:text/html,x",
    "file:///etc/passwd",
    "cursor:callback",
    "com.example.app:callback",
    "cursor://user@oauth/callback",
    f"https://example.org/{'x' * 600}",
]


def test_redirects_are_https_or_on_the_users_machine(endpoints):
    for uri in WRONG_REDIRECTS:
        refused(endpoints.register(redirect_uris=[REDIRECT, uri]), "invalid_redirect_uri")
        assert not RegisteredApp.objects.exists()


def test_an_app_gets_no_secret_and_is_shown_what_is_registered(endpoints):
    made = endpoints.register(
        token_endpoint_auth_method="client_secret_post",
        logo_uri="https://example.org/logo.png",
        grant_types=["authorization_code", "refresh_token", "implicit"],
        scope="read write admin openid",
    )
    assert made.status_code == 201
    known = made.json()
    assert known.pop("client_id_issued_at") > 0
    assert known == {
        "client_id": str(RegisteredApp.objects.get().client_id),
        "client_name": "A connector",
        "redirect_uris": [REDIRECT],
        "response_types": ["code"],
        "grant_types": ["authorization_code", "refresh_token"],
        "token_endpoint_auth_method": "none",
        "application_type": "native",
        "scope": "read write",
    }


NO_REGISTRATIONS = [
    b"",
    b"{",
    b"[]",
    b"7",
    b'{"redirect_uris": []}',
    b'{"redirect_uris": 7}',
    b"[" * 60_000,
]


def test_what_is_no_registration_registers_nothing(endpoints):
    headers = {"Content-Type": "application/json"}
    address = f"{endpoints.origin}/oauth/register"
    for body in NO_REGISTRATIONS:
        sent = httpx.post(address, content=body, headers=headers, timeout=60)
        refused(sent, "invalid_client_metadata")
    assert not RegisteredApp.objects.exists()


def test_a_registration_that_a_web_page_sends_is_refused(endpoints):
    address = f"{endpoints.origin}/oauth/register"
    body = {"redirect_uris": ["https://evil.example.org/"]}
    headers = {"Origin": "https://evil.example.org"}
    assert httpx.post(address, json=body, headers=headers, timeout=60).status_code == 403
    # As a page may send without being asked about it.
    headers = {"Content-Type": "text/plain"}
    sent = httpx.post(address, content=b'{"redirect_uris": ["https://x.org/"]}', headers=headers)
    refused(sent, "invalid_client_metadata")
    assert httpx.post(address, content=b"x" * 70_000, timeout=60).status_code == 413
    assert not RegisteredApp.objects.exists()


def test_one_address_registers_so_many_apps_and_no_more(endpoints, monkeypatch):
    monkeypatch.setattr(throttling, "MOST_REGISTRATIONS", 2)
    assert [endpoints.register().status_code for _ in range(3)] == [201, 201, 429]
    assert endpoints.register().headers["Retry-After"] == "3600"


def test_what_nobody_needs_is_forgotten(endpoints, browser):
    endpoints.client_id()
    client_id, tokens = endpoints.connect(browser)
    waiting = endpoints.client_id()
    endpoints.code(waiting, browser)
    forget_unused()
    assert RegisteredApp.objects.count() == 3

    RegisteredApp.objects.update(registered_at=timezone.now() - timedelta(days=2))
    forget_unused()
    kept = {str(app.client_id) for app in RegisteredApp.objects.all()}
    assert kept == {client_id, waiting}
    assert endpoints.call(tokens["access_token"]).status_code == 200

    AuthorizationCode.objects.update(expires_at=timezone.now() - timedelta(days=2))
    Token.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    forget_unused()
    assert RegisteredApp.objects.get() == ConnectedApp.objects.get().app
    assert not Token.objects.exists()
    assert not AuthorizationCode.objects.exists()

    ApiKey.objects.update(expires_at=timezone.now() - timedelta(days=91))
    forget_unused()
    assert not ConnectedApp.objects.exists()
    assert not ApiKey.objects.exists()


def test_a_native_app_may_have_a_scheme_of_its_own(endpoints):
    for uri in ("cursor://anysphere.cursor-mcp/oauth/callback", "com.example.app:/callback"):
        made = endpoints.register(redirect_uris=[uri], client_name="")
        assert made.json()["redirect_uris"] == [uri]
    assert made.json()["client_name"] == "com.example.app"
