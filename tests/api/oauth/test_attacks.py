"""What docs/security.md says of connected apps, tried."""

from __future__ import annotations

import html
import re
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import httpx
from django.utils import timezone

from api.models import AuthorizationCode, ConnectedApp, RegisteredApp, Token
from api.oauth import grants
from isolation import row_access
from settings_app.api_keys import ApiKey
from tests.api.oauth.conftest import REDIRECT, VERIFIER, answer_in, challenge_of, refused

LOOPBACK = "http://localhost"


# Who is sent where.


NOT_REGISTERED = [
    {"redirect_uri": "https://evil.example.org/callback"},
    {"redirect_uri": "http://127.0.0.1.evil.example.org/callback"},
    {"redirect_uri": "http://127.0.0.1:33418/callback/../other"},
    {"redirect_uri": "http://127.0.0.1:33418@evil.example.org/callback"},
    {"redirect_uri": "http://127.0.0.1:33418/callback?next=x"},
    {"redirect_uri": "http://localhost:33418/callback"},
    {"redirect_uri": "https://127.0.0.1:33418/callback"},
    {"redirect_uri": "javascript:alert(1)"},
    {"redirect_uri": "nowhere"},
    {"redirect_uri": ""},
    {"client_id": "6f1f3f0e-0b1f-4c55-8f55-0d6f0c3a7d11"},
    {"client_id": "x\0"},
    {"client_id": ""},
]


def test_nobody_is_sent_to_an_address_that_is_not_registered(endpoints, browser):
    for changed in NOT_REGISTERED:
        client_id = endpoints.client_id()
        page = browser.http.get(endpoints.authorize_url(client_id, **changed))
        assert page.status_code == 400
        assert "This app cannot connect" in page.text
        assert "Location" not in page.headers


def test_a_loopback_address_may_have_another_port(endpoints, browser):
    client_id = endpoints.client_id(redirect_uris=["http://127.0.0.1/callback"])
    sent_to = browser.decide(
        endpoints.authorize_url(client_id, redirect_uri="http://127.0.0.1:5/callback")
    )
    assert sent_to.startswith("http://127.0.0.1:5/callback?code=")


def test_a_native_app_is_answered_at_its_own_scheme_only_as_registered(endpoints, browser):
    own = "cursor://anysphere.cursor-mcp/oauth/callback"
    client_id = endpoints.client_id(redirect_uris=[own])
    for other in (f"{own}/more", f"{own}?next=x", own.replace("cursor:", "vscode:")):
        refusal = browser.http.get(endpoints.authorize_url(client_id, redirect_uri=other))
        assert refusal.status_code == 400
    address = endpoints.authorize_url(client_id, redirect_uri=own)
    sent_to = browser.decide(address)
    assert sent_to.startswith(f"{own}?code=")
    page = browser.pages[-1]
    named = "opens <strong>cursor://anysphere.cursor-mcp</strong> addresses, which any installed"
    assert named in page.text
    assert "form-action 'self' cursor:;" in page.headers["Content-Security-Policy"]
    code = answer_in(sent_to)["code"]
    # Another program that has claimed the scheme has no verifier.
    wrong = endpoints.exchange(client_id, code, redirect_uri=own, code_verifier="x" * 43)
    refused(wrong, "invalid_grant")
    code = answer_in(browser.decide(address))["code"]
    assert endpoints.exchange(client_id, code, redirect_uri=own).status_code == 200
    # Without a click no program is opened, not even to hear that its request was wrong.
    odd = browser.http.get(endpoints.authorize_url(client_id, redirect_uri=own, scope="admin"))
    assert (odd.status_code, "location" in odd.headers) == (400, False)
    assert "cannot be answered" in odd.text


WRONG_REQUESTS = [
    ({"response_type": "token"}, "unsupported_response_type"),
    ({"code_challenge": None}, "invalid_request"),
    ({"code_challenge": VERIFIER, "code_challenge_method": "plain"}, "invalid_request"),
    ({"code_challenge": "short"}, "invalid_request"),
    ({"scope": "admin"}, "invalid_scope"),
    ({"resource": "https://elsewhere.example.org/mcp"}, "invalid_target"),
    ({"resource": ""}, "invalid_target"),
]


def test_an_app_gets_the_reason_with_its_state_and_the_issuer(endpoints, browser):
    client_id = endpoints.client_id()
    for changed, error in WRONG_REQUESTS:
        answer = browser.http.get(endpoints.authorize_url(client_id, **changed))
        assert answer.status_code == 303
        assert answer.headers["Location"].startswith(f"{REDIRECT}?")
        said = answer_in(answer.headers["Location"])
        assert (said["error"], said["state"]) == (error, "as it was"), changed
        assert said["iss"] == endpoints.origin


def test_a_repeated_field_is_refused(endpoints, browser):
    address = endpoints.authorize_url(endpoints.client_id()) + "&scope=write"
    answer = browser.http.get(address)
    assert answer_in(answer.headers["Location"])["error"] == "invalid_request"
    client_id = endpoints.client_id()
    form = f"client_id={client_id}&grant_type=refresh_token&refresh_token=a&refresh_token=b"
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    sent = httpx.post(f"{endpoints.origin}/oauth/token", content=form, headers=kind, timeout=60)
    refused(sent, "invalid_request")


# Consent.


def test_consent_needs_a_signed_in_user_a_click_and_a_token(endpoints, browser):
    address = endpoints.authorize_url(endpoints.client_id())
    asked = httpx.get(address, timeout=60)
    assert asked.status_code == 302
    assert asked.headers["Location"].startswith("/sign-in/?next=/oauth/authorize")
    form = browser.form(address)
    forged = {**form, "do": "allow", "csrfmiddlewaretoken": "x" * 64}
    assert browser.http.post(address, data=forged).status_code == 403
    assert httpx.post(address, data={**form, "do": "allow"}, timeout=60).status_code in (
        302,
        403,
    )
    assert "error=access_denied" in browser.decide(address, do="")
    assert not AuthorizationCode.objects.exists()


def test_the_page_says_who_asks_and_where_it_goes(endpoints, browser, owner):
    client_id = endpoints.client_id(
        client_name="<b>Claude</b>\u202e\0 " + "x" * 200,
        redirect_uris=["https://xn--80ak6aa92e.example.org/callback"],
    )
    address = endpoints.authorize_url(
        client_id, redirect_uri="https://xn--80ak6aa92e.example.org/callback"
    )
    page = browser.http.get(address)
    main = html.unescape(page.text.split("<main")[1])
    assert "goes to <strong>xn--80ak6aa92e.example.org</strong>" in main
    assert "&lt;b&gt;Claude&lt;/b&gt; xxx" in page.text
    assert "\u202e" not in page.text
    assert "x" * 101 not in page.text
    assert f"<strong>{owner.username}</strong>" in main
    assert "Administer" not in main
    policy = page.headers["Content-Security-Policy"]
    assert "frame-ancestors 'none'" in policy
    assert "form-action 'self' https://xn--80ak6aa92e.example.org;" in policy
    assert "no-store" in page.headers["Cache-Control"]


def test_the_page_says_that_a_program_on_this_computer_asks(endpoints, browser):
    page = browser.http.get(endpoints.authorize_url(endpoints.client_id())).text
    assert "a program on this computer, at <strong>127.0.0.1:33418</strong>" in page
    assert "30 days" in page
    brief = endpoints.client_id(grant_types=["authorization_code"])
    assert "for an hour at most" in browser.http.get(endpoints.authorize_url(brief)).text


def test_nothing_is_allowed_that_was_not_offered(endpoints, browser):
    address = endpoints.authorize_url(endpoints.client_id())
    for changed in {"scopes": ["admin"]}, {"scopes": []}, {"palaces": "x"}:
        form = browser.form(address) | changed | {"do": "allow"}
        assert browser.http.post(address, data=form).status_code == 400
    assert not AuthorizationCode.objects.exists()


def test_write_is_not_offered_to_an_app_that_asked_to_read(endpoints, browser):
    address = endpoints.authorize_url(endpoints.client_id(), scope="read openid")
    assert browser.form(address)["scopes"] == ["read"]
    form = browser.form(address) | {"scopes": ["read", "write"], "do": "allow"}
    assert browser.http.post(address, data=form).status_code == 400


def test_without_a_scope_both_are_offered(endpoints, browser):
    address = endpoints.authorize_url(endpoints.client_id(), scope=None)
    assert browser.form(address)["scopes"] == ["read", "write"]


# Codes.


def test_a_code_is_used_once_and_a_second_use_ends_the_connection(endpoints, browser):
    client_id = endpoints.client_id()
    code = endpoints.code(client_id, browser)
    tokens = endpoints.exchange(client_id, code).json()
    assert endpoints.call(tokens["access_token"]).status_code == 200
    refused(endpoints.exchange(client_id, code), "invalid_grant")
    assert endpoints.call(tokens["access_token"]).status_code == 401
    refused(endpoints.refresh(client_id, tokens["refresh_token"]), "invalid_grant")
    assert ConnectedApp.objects.get().key.revoked_at is not None


WRONG_EXCHANGES = [
    ({"code_verifier": VERIFIER + "x"}, "invalid_grant"),
    ({"code_verifier": challenge_of(VERIFIER)}, "invalid_grant"),
    ({"code_verifier": ""}, "invalid_grant"),
    ({"redirect_uri": "http://127.0.0.1:1/callback"}, "invalid_request"),
    ({"resource": "https://elsewhere.example.org/mcp"}, "invalid_target"),
    ({"grant_type": "password"}, "invalid_request"),
    ({"code": "made up"}, "invalid_grant"),
]


def test_a_code_needs_its_verifier_address_and_resource(endpoints, browser):
    client_id = endpoints.client_id()
    code = endpoints.code(client_id, browser)
    for changed, error in WRONG_EXCHANGES:
        refused(endpoints.exchange(client_id, **{"code": code, **changed}), error)
    assert not ConnectedApp.objects.exists()
    # What was tried wrongly does not keep the app from doing it right.
    assert endpoints.exchange(client_id, code).status_code == 200


def test_a_code_is_of_no_use_to_another_app_or_later(endpoints, browser):
    client_id, other = endpoints.client_id(), endpoints.client_id()
    code = endpoints.code(client_id, browser)
    refused(endpoints.exchange(other, code), "invalid_grant")
    refused(endpoints.exchange("nobody", code), "invalid_client", 401)
    AuthorizationCode.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    refused(endpoints.exchange(client_id, code), "invalid_grant")
    assert not ConnectedApp.objects.exists()


def test_of_two_exchanges_at_once_one_at_most_is_answered(endpoints, browser):
    client_id = endpoints.client_id()
    code = endpoints.code(client_id, browser)
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: endpoints.exchange(client_id, code), range(4)))
    assert sorted(answer.status_code for answer in answers) == [200, 400, 400, 400]
    assert ConnectedApp.objects.get().key.state == "revoked"


def test_a_code_of_a_disabled_user_opens_nothing(endpoints, browser, owner):
    client_id = endpoints.client_id()
    code = endpoints.code(client_id, browser)
    owner.is_active = False
    owner.save()
    refused(endpoints.exchange(client_id, code), "invalid_grant")


# Tokens.


def test_a_refresh_token_works_once_and_a_second_use_ends_the_connection(endpoints, browser):
    client_id, first = endpoints.connect(browser)
    second = endpoints.refresh(client_id, first["refresh_token"]).json()
    assert endpoints.call(second["access_token"]).status_code == 200
    refused(endpoints.refresh(client_id, first["refresh_token"]), "invalid_grant")
    assert endpoints.call(second["access_token"]).status_code == 401
    refused(endpoints.refresh(client_id, second["refresh_token"]), "invalid_grant")


def test_of_two_refreshes_at_once_one_at_most_is_answered(endpoints, browser):
    client_id, tokens = endpoints.connect(browser)
    with ThreadPoolExecutor(4) as pool:
        asked = [tokens["refresh_token"]] * 4
        answers = list(pool.map(lambda text: endpoints.refresh(client_id, text), asked))
    assert sorted(answer.status_code for answer in answers) == [200, 400, 400, 400]
    assert ConnectedApp.objects.get().key.state == "revoked"
    assert not Token.objects.exists()


def test_a_refresh_token_is_of_no_use_to_another_app(endpoints, browser):
    client_id, tokens = endpoints.connect(browser)
    refused(endpoints.refresh(endpoints.client_id(), tokens["refresh_token"]), "invalid_grant")
    assert endpoints.refresh(client_id, tokens["refresh_token"]).status_code == 200


def test_a_refresh_asks_for_no_more_and_may_ask_for_less(endpoints, browser):
    client_id, tokens = endpoints.connect(browser, scopes=["read"])
    more = endpoints.refresh(client_id, tokens["refresh_token"], scope="read write")
    refused(more, "invalid_scope")
    client_id, tokens = endpoints.connect(browser)
    less = endpoints.refresh(client_id, tokens["refresh_token"], scope="read").json()
    assert less["scope"] == "read"
    assert "save_memory" not in endpoints.tools(less["access_token"])
    again = endpoints.refresh(client_id, less["refresh_token"]).json()
    assert "save_memory" in endpoints.tools(again["access_token"])


def test_a_token_for_another_address_is_refused(endpoints, browser, settings):
    """The same server by another name: a token is for the one it was issued for."""
    client_id, tokens = endpoints.connect(browser)
    token, port = tokens["access_token"], endpoints.origin.rpartition(":")[2]
    other = endpoints.call(token, url=f"{LOOPBACK}:{port}/mcp")
    assert (other.status_code, other.json()["code"]) == (401, "bad_token")
    settings.PUBLIC_URL = "https://loci.example.org"
    assert endpoints.call(token).status_code == 401
    refused(endpoints.refresh(client_id, tokens["refresh_token"]), "invalid_grant")
    settings.PUBLIC_URL = ""
    assert endpoints.call(token).status_code == 200


def test_a_token_opens_mcp_only(endpoints, browser):
    _, tokens = endpoints.connect(browser)
    for token in tokens["access_token"], tokens["refresh_token"]:
        headers = {"Authorization": f"Bearer {token}"}
        for path in ("/v1/memories/", "/v1/models", "/v1/palaces/"):
            answer = httpx.get(f"{endpoints.origin}{path}", headers=headers, timeout=60)
            assert answer.status_code == 401, path
    assert endpoints.call(tokens["refresh_token"]).status_code == 401
    in_address = f"{endpoints.mcp}?access_token={tokens['access_token']}"
    assert endpoints.call(None, url=in_address).status_code == 401


def test_a_strangers_token_reaches_nothing_of_the_owner(endpoints, browser, strangers):
    client_id, mine = endpoints.connect(browser)
    other, theirs = endpoints.connect(strangers)
    assert endpoints.revoke(other, mine["refresh_token"]).status_code == 200
    assert endpoints.revoke(other, theirs["refresh_token"]).status_code == 200
    assert endpoints.call(theirs["access_token"]).status_code == 401
    assert endpoints.call(mine["access_token"]).status_code == 200
    assert client_id != other


def test_revoking_an_access_token_ends_the_connection(endpoints, browser):
    client_id, tokens = endpoints.connect(browser)
    assert endpoints.revoke(client_id, "made up").status_code == 200
    refused(endpoints.revoke("nobody", tokens["access_token"]), "invalid_client", 401)
    refused(endpoints.revoke(client_id, ""), "invalid_request")
    assert endpoints.revoke(client_id, tokens["access_token"]).status_code == 200
    assert endpoints.call(tokens["access_token"]).status_code == 401


def test_only_digests_are_stored(endpoints, browser):
    client_id = endpoints.client_id()
    code = endpoints.code(client_id, browser)
    tokens = endpoints.exchange(client_id, code).json()
    rows = [
        str(row)
        for model in (AuthorizationCode, ConnectedApp, RegisteredApp, Token, ApiKey)
        for row in model.objects.values()
    ]
    assert len(rows) == 6
    for secret in (code, tokens["access_token"], tokens["refresh_token"], VERIFIER):
        assert not [row for row in rows if secret in row]


def test_the_database_shows_a_token_to_its_owner_and_its_holder(endpoints, browser, stranger):
    endpoints.connect(browser)
    token = Token.objects.first()
    for model in (Token, AuthorizationCode, ConnectedApp):
        with row_access.open_account(stranger.pk):
            assert not model.objects.exists()
        with row_access.deny_all():
            assert not model.objects.exists()
        with row_access.open_account(token.owner_id):
            assert model.objects.exists()
    with row_access.with_secret(token.digest):
        assert list(Token.objects.all()) == [token]
        assert not ConnectedApp.objects.exists()


def test_secrets_have_256_random_bits(endpoints, browser):
    _, tokens = endpoints.connect(browser)
    assert re.fullmatch(rf"{grants.ACCESS_PREFIX}[\w-]{{43}}", tokens["access_token"])
