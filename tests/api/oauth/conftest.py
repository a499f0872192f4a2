"""Apps that connect by OAuth, and the browser of their user."""

from __future__ import annotations

import base64
import hashlib
import html
import re
import secrets
from contextlib import asynccontextmanager, closing
from urllib.parse import parse_qs, urlencode, urlsplit

import anyio
import httpx
import httpx2
import pytest
from django.conf import settings
from django.core.cache import cache
from django.test import Client as DjangoClient
from mcp.client import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata

from api.models import ConnectedApp, RegisteredApp
from api.oauth import grants
from api.oauth.grants import Consent
from tests.api.mcp.conftest import door, owner, stranger  # noqa: F401

REDIRECT = "http://127.0.0.1:33418/callback"
LIST_TOOLS = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
VERIFIER = secrets.token_urlsafe(48)


def challenge_of(verifier):
    digest = hashlib.sha256(verifier.encode()).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def answer_in(location):
    """The parameters in an address that a browser was sent to."""
    return {name: values[0] for name, values in parse_qs(urlsplit(location).query).items()}


def refused(response, error, status=400):
    assert response.status_code == status, response.text
    assert response.json()["error"] == error, response.text
    return response


class Browser:
    """A browser in which somebody is signed in."""

    def __init__(self, user):
        signed_in = DjangoClient()
        signed_in.force_login(user)
        session = signed_in.cookies[settings.SESSION_COOKIE_NAME].value
        self.http = httpx.Client(cookies={settings.SESSION_COOKIE_NAME: session}, timeout=60)
        self.pages = []

    def close(self):
        self.http.close()

    def form(self, address):
        """What the consent page would send if nothing were changed."""
        page = self.http.get(address)
        assert page.status_code == 200, page.text
        self.pages.append(page)
        main = page.text.split("<main")[1]
        token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', main)[1]
        fields = {"csrfmiddlewaretoken": html.unescape(token), "subject": ""}
        for tag in re.findall(r"<input ([^>]* checked)[ >]", main):
            given = dict(re.findall(r'([\w-]+)="([^"]*)"', tag))
            fields.setdefault(given["name"], []).append(given["value"])
        return fields

    def decide(self, address, do="allow", **changed):
        """Send the form; returns where the browser is sent to."""
        answer = self.http.post(address, data=self.form(address) | changed | {"do": do})
        assert answer.status_code == 303, answer.text
        return answer.headers["Location"]


class Storage:
    """What an app keeps."""

    tokens = client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client_info):
        self.client = client_info


class DeniedError(Exception):
    """The user did not allow it."""


class App:
    """An app that connects as the SDK's own client does."""

    grant_types = ("authorization_code", "refresh_token")

    def __init__(self, url, browser, **choices):
        self.url, self.browser, self.choices = url, browser, choices
        self.storage = Storage()
        self.location = None
        self.provider = OAuthClientProvider(
            url,
            OAuthClientMetadata(
                client_name="A connector", redirect_uris=[REDIRECT], grant_types=self.grant_types
            ),
            self.storage,
            self._ask,
            self._answer,
        )

    async def _ask(self, address):
        decide = self.browser.decide
        self.location = await anyio.to_thread.run_sync(lambda: decide(address, **self.choices))

    async def _answer(self):
        answer = answer_in(self.location)
        if "error" in answer:
            raise DeniedError(answer["error"])
        return AuthorizationCodeResult(**answer)

    def run(self, talk):
        async def whole():
            async with self.client() as client:
                return await talk(client)

        return anyio.run(whole)

    @asynccontextmanager
    async def client(self):
        async with httpx2.AsyncClient(auth=self.provider, timeout=60) as http:
            transport = streamable_http_client(self.url, http_client=http)
            async with Client(transport) as client:
                yield client


class Endpoints:
    """The same steps one by one, to take some of them wrongly."""

    def __init__(self, url):
        self.origin, self.mcp = url.removesuffix("/mcp"), url

    def register(self, **metadata):
        sent = {"client_name": "A connector", "redirect_uris": [REDIRECT], **metadata}
        return httpx.post(f"{self.origin}/oauth/register", json=sent, timeout=60)

    def client_id(self, **metadata):
        return self.register(**metadata).json()["client_id"]

    def authorize_url(self, client_id, /, **changed):
        asked = {
            "response_type": "code",
            "client_id": client_id,
            "redirect_uri": REDIRECT,
            "code_challenge": challenge_of(VERIFIER),
            "code_challenge_method": "S256",
            "state": "as it was",
            "scope": "read write",
            "resource": self.mcp,
            **changed,
        }
        given = {name: value for name, value in asked.items() if value is not None}
        return f"{self.origin}/oauth/authorize?{urlencode(given)}"

    def code(self, client_id, browser, **choices):
        return answer_in(browser.decide(self.authorize_url(client_id), **choices))["code"]

    def token(self, client_id, **fields):
        sent = {"client_id": client_id, **fields}
        return httpx.post(f"{self.origin}/oauth/token", data=sent, timeout=60)

    def exchange(self, client_id, code, **changed):
        fields = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": REDIRECT,
            "code_verifier": VERIFIER,
            "resource": self.mcp,
            **changed,
        }
        return self.token(client_id, **fields)

    def refresh(self, client_id, refresh_token, **changed):
        fields = {"grant_type": "refresh_token", "refresh_token": refresh_token, **changed}
        return self.token(client_id, **fields)

    def revoke(self, client_id, token):
        sent = {"client_id": client_id, "token": token}
        return httpx.post(f"{self.origin}/oauth/revoke", data=sent, timeout=60)

    def connect(self, browser, **choices):
        """A client id, and the tokens it was given."""
        client_id = self.client_id()
        tokens = self.exchange(client_id, self.code(client_id, browser, **choices))
        assert tokens.status_code == 200, tokens.text
        return client_id, tokens.json()

    def call(self, token, url=None, **headers):
        headers = {"Accept": "application/json, text/event-stream", **headers}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        return httpx.post(url or self.mcp, json=LIST_TOOLS, headers=headers, timeout=60)

    def tools(self, token):
        return {tool["name"] for tool in self.call(token).json()["result"]["tools"]}


def connect(person, name="Claude", subject=""):
    """The connection, and its tokens."""
    app = RegisteredApp.objects.create(
        name=name,
        redirect_uris=["https://claude.example.org/callback"],
        grant_types=["authorization_code", "refresh_token"],
    )
    resource = "https://loci.example.org/mcp"
    consent = Consent(
        owner=person,
        app=app,
        scopes=["read", "write"],
        subject=subject,
        resource=resource,
        code_challenge="c" * 43,
        redirect_uri=app.redirect_uris[0],
        redirect_uri_given=True,
    )
    issued = grants.exchange_code(grants.issue_code(consent), str(app.client_id), resource)
    return ConnectedApp.objects.get(app=app), issued


@pytest.fixture(autouse=True)
def _nobody_has_registered_yet():
    """All tests come from one address."""
    cache.clear()


@pytest.fixture
def browser(owner):  # noqa: F811
    with closing(Browser(owner)) as opened:
        yield opened


@pytest.fixture
def strangers(stranger):  # noqa: F811
    with closing(Browser(stranger)) as opened:
        yield opened


@pytest.fixture
def endpoints(door):  # noqa: F811
    return Endpoints(door.url)
