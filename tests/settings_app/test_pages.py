"""Signing in and out, what every response carries, and the pages for what goes wrong."""

from __future__ import annotations

import re

import pytest
from django.core.exceptions import PermissionDenied, SuspiciousOperation
from django.http import HttpResponse
from django.test import Client
from django.urls import include, path, reverse
from django.views.decorators.http import require_POST

PASSWORD = {"username": "alice", "password": "alice-password"}


def fails_with(error):
    def view(request):
        raise error

    return view


@require_POST
def form(request):
    return HttpResponse("saved")


urlpatterns = [
    path("", include("config.urls")),
    path("denied/", fails_with(PermissionDenied())),
    path("damaged/", fails_with(SuspiciousOperation("odd"))),
    path("broken/", fails_with(RuntimeError("a secret detail"))),
    path("form/", form),
]


def test_a_password_signs_in_and_leads_where_one_was_going(client, alice):
    page = client.get(client.get("/memory/?q=salt").url)
    where = re.search('name="next" value="([^"]+)"', page.text)[1]
    assert client.post(reverse("sign_in"), {**PASSWORD, "next": where}).url == "/memory/?q=salt"


def test_a_wrong_password_gets_a_message(client, alice):
    response = client.post(reverse("sign_in"), {**PASSWORD, "password": "wrong"})
    assert response.status_code == 200
    assert "The name or the password is not right." in response.text
    assert "_auth_user_id" not in client.session


def test_sign_in_does_not_lead_to_another_site(client, alice):
    response = client.post(reverse("sign_in"), {**PASSWORD, "next": "https://elsewhere.example/"})
    assert response.url == reverse("chat")


def test_who_is_signed_in_skips_the_sign_in_page(client, alice):
    client.force_login(alice)
    assert client.get(reverse("sign_in")).url == reverse("chat")


def test_signing_out_takes_a_form_and_ends_the_session(client, alice):
    client.force_login(alice)
    assert client.get(reverse("sign_out")).status_code == 405
    assert client.post(reverse("sign_out")).url == reverse("sign_in")
    assert client.get(reverse("memory")).status_code == 302


@pytest.mark.parametrize("address", ["/sign-in/", "/health", "/nothing/", "/sign-in/once/x/"])
def test_every_response_allows_nothing_from_elsewhere_and_nothing_inline(client, db, address):
    policy = client.get(address).headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy


@pytest.mark.urls("tests.settings_app.test_pages")
@pytest.mark.parametrize(
    ("address", "status", "title"),
    [
        ("/nothing/", 404, "There is nothing here"),
        ("/denied/", 403, "You cannot open this page"),
        ("/damaged/", 400, "This request could not be read"),
        ("/broken/", 500, "Something broke"),
    ],
)
def test_what_goes_wrong_has_a_page_of_ours(db, address, status, title):
    response = Client(raise_request_exception=False).get(address)
    assert response.status_code == status
    assert f"<h1>{title}</h1>" in response.text
    assert "a secret detail" not in response.text
    assert "base.css" in response.text


@pytest.mark.urls("tests.settings_app.test_pages")
def test_a_form_without_its_token_has_a_page_of_ours():
    response = Client(enforce_csrf_checks=True).post("/form/")
    assert response.status_code == 403
    assert "<h1>This form is out of date</h1>" in response.text


@pytest.mark.urls("tests.settings_app.test_pages")
def test_the_page_for_a_fault_needs_no_database():
    response = Client(raise_request_exception=False).get("/broken/")
    assert response.status_code == 500
    assert "Something broke" in response.text
