"""Metadata, the challenge of /mcp, and web pages of other origins."""

from __future__ import annotations

import httpx
import pytest
from django.core.exceptions import ImproperlyConfigured
from mcp.shared.auth import OAuthMetadata, ProtectedResourceMetadata

from config.environment import env_origins, env_public_origin
from settings_app.api_keys import issue

RESOURCE = "/.well-known/oauth-protected-resource"
SERVER = "/.well-known/oauth-authorization-server"
PAGE = "https://app.example.org"


def get(endpoints, path, **headers):
    return httpx.get(f"{endpoints.origin}{path}", headers=headers, timeout=60)


def test_a_refusal_leads_to_the_metadata_and_that_to_the_server(endpoints):
    refused = endpoints.call(None)
    assert refused.status_code == 401
    challenge = refused.headers["WWW-Authenticate"]
    assert challenge == (
        f'Bearer realm="Loci", resource_metadata="{endpoints.origin}{RESOURCE}/mcp", '
        'scope="read write"'
    )
    for path in (f"{RESOURCE}/mcp", f"{RESOURCE}/mcp/", RESOURCE):
        known = ProtectedResourceMetadata.model_validate(get(endpoints, path).json())
        assert str(known.resource) == endpoints.mcp
        assert [str(server) for server in known.authorization_servers] == [endpoints.origin]
        assert known.bearer_methods_supported == ["header"]
    server = OAuthMetadata.model_validate(get(endpoints, SERVER).json())
    assert str(server.issuer) == endpoints.origin
    assert server.code_challenge_methods_supported == ["S256"]
    assert server.token_endpoint_auth_methods_supported == ["none"]
    assert server.authorization_response_iss_parameter_supported
    assert server.client_id_metadata_document_supported is None
    for address in (
        server.token_endpoint,
        server.registration_endpoint,
        server.revocation_endpoint,
    ):
        assert httpx.get(str(address), timeout=60).status_code == 405
    assert httpx.get(str(server.authorization_endpoint), timeout=60).status_code == 302


def test_what_is_no_token_is_said_to_be_none(endpoints):
    for wrong in ("loci_made-up", "loci-access-made-up"):
        assert 'error="invalid_token"' in endpoints.call(wrong).headers["WWW-Authenticate"]


def test_a_server_has_one_address_whatever_the_host(endpoints, settings):
    settings.PUBLIC_URL = "https://loci.example.org"
    settings.ALLOWED_HOSTS = ["*"]
    for host in ("loci.example.org", "evil.example.org", "localhost"):
        known = get(endpoints, SERVER, Host=host).json()
        assert known["issuer"] == "https://loci.example.org"
        assert known["token_endpoint"] == "https://loci.example.org/oauth/token"
        challenge = endpoints.call(None, Host=host).headers["WWW-Authenticate"]
        assert f'"https://loci.example.org{RESOURCE}/mcp"' in challenge


def test_where_https_is_on_it_is_to_be_used_from_now_on(endpoints, settings):
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    settings.SECURE_HSTS_SECONDS = 60
    answer = get(endpoints, SERVER, **{"X-Forwarded-Proto": "https"})
    assert answer.headers["Strict-Transport-Security"] == "max-age=60"


def test_without_a_public_address_it_is_off_except_on_loopback(endpoints, settings, owner):
    settings.ALLOWED_HOSTS = ["loci.example.org", "127.0.0.1"]
    elsewhere = {"Host": "loci.example.org"}
    for path in (RESOURCE, f"{RESOURCE}/mcp", SERVER):
        assert get(endpoints, path, **elsewhere).status_code == 404
    challenge = endpoints.call(None, **elsewhere).headers["WWW-Authenticate"]
    assert challenge == 'Bearer realm="Loci"'
    for path in ("register", "token", "revoke"):
        answer = httpx.post(f"{endpoints.origin}/oauth/{path}", headers=elsewhere, timeout=60)
        assert answer.status_code == 404
    _, key = issue(owner, "an assistant")
    assert endpoints.call(key, **elsewhere).status_code == 200
    assert get(endpoints, SERVER, Host="evil.example.org").status_code == 400


def test_where_https_is_on_what_came_by_http_is_led_there(endpoints, settings):
    settings.SECURE_SSL_REDIRECT = True
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    origin = endpoints.origin
    answers = [
        httpx.get(f"{origin}{RESOURCE}/mcp?a=b", timeout=60),
        httpx.get(f"{origin}{SERVER}", timeout=60),
        *(httpx.post(f"{origin}/oauth/{name}") for name in ("register", "token", "revoke")),
    ]
    for answer in answers:
        assert answer.status_code == 308
        assert answer.headers["Location"] == str(answer.url).replace("http://", "https://")
    assert get(endpoints, SERVER, **{"X-Forwarded-Proto": "https"}).status_code == 200


def test_the_page_of_consent_is_off_there_too(client, settings, owner):
    settings.ALLOWED_HOSTS = ["loci.example.org"]
    client.force_login(owner)
    assert client.get("/oauth/authorize", headers={"Host": "loci.example.org"}).status_code == 404


def preflight(address, origin, method="POST"):
    headers = {
        "Origin": origin,
        "Access-Control-Request-Method": method,
        "Access-Control-Request-Headers": "authorization,content-type,mcp-protocol-version",
    }
    return httpx.options(address, headers=headers, timeout=60)


def test_pages_read_metadata_and_nothing_else_unless_they_are_listed(endpoints, owner, settings):
    _, key = issue(owner, "an assistant")
    metadata = get(endpoints, f"{RESOURCE}/mcp", Origin=PAGE)
    assert metadata.headers["Access-Control-Allow-Origin"] == "*"
    assert preflight(f"{endpoints.origin}{SERVER}", PAGE, "GET").status_code == 200
    addresses = [endpoints.mcp] + [
        f"{endpoints.origin}/oauth/{each}" for each in ("token", "register")
    ]
    for address in addresses:
        asked = preflight(address, PAGE)
        assert asked.status_code >= 400
        assert "Access-Control-Allow-Origin" not in asked.headers
    refused = endpoints.call(key, Origin=PAGE)
    assert refused.status_code == 403
    assert "Access-Control-Allow-Origin" not in refused.headers

    settings.CORS_ORIGINS = [PAGE]
    for address in addresses:
        asked = preflight(address, PAGE)
        assert asked.status_code == 200
        assert asked.headers["Access-Control-Allow-Origin"] == PAGE
        assert "authorization" in asked.headers["Access-Control-Allow-Headers"]
        assert "Access-Control-Allow-Credentials" not in asked.headers
        assert preflight(address, "https://evil.example.org").status_code >= 400
    answer = endpoints.call(key, Origin=PAGE)
    assert answer.status_code == 200
    assert answer.headers["Access-Control-Allow-Origin"] == PAGE
    challenged = endpoints.call(None, Origin=PAGE)
    assert "WWW-Authenticate" in challenged.headers["Access-Control-Expose-Headers"]


@pytest.mark.parametrize(
    ("value", "origin"),
    [
        ("", ""),
        ("https://Loci.example.org/", "https://loci.example.org"),
        ("http://localhost:8000", "http://localhost:8000"),
    ],
)
def test_the_public_address_is_an_origin(monkeypatch, value, origin):
    monkeypatch.setenv("LOCI_PUBLIC_URL", value)
    assert env_public_origin("LOCI_PUBLIC_URL") == origin


@pytest.mark.parametrize(
    "value",
    ["loci.example.org", "http://loci.example.org", "https://x.org/loci", "https://a@x.org", "x:y"],
)
def test_another_public_address_stops_the_start(monkeypatch, value):
    monkeypatch.setenv("LOCI_PUBLIC_URL", value)
    with pytest.raises(ImproperlyConfigured, match="LOCI_PUBLIC_URL is "):
        env_public_origin("LOCI_PUBLIC_URL")


def test_origins_of_pages_are_listed_one_by_one(monkeypatch):
    monkeypatch.setenv("LOCI_CORS_ORIGINS", f"{PAGE}, http://localhost:6274")
    assert env_origins("LOCI_CORS_ORIGINS") == [PAGE, "http://localhost:6274"]
    monkeypatch.setenv("LOCI_CORS_ORIGINS", "*")
    with pytest.raises(ImproperlyConfigured, match="LOCI_CORS_ORIGINS is "):
        env_origins("LOCI_CORS_ORIGINS")
