"""Pages: allow an app, list connected apps, disconnect one.

An app's request is checked before and after the user has decided.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit
from uuid import UUID

from django import forms
from django.contrib import messages
from django.db.models import F
from django.http import Http404, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from mcp.server.auth.errors import stringify_pydantic_error
from mcp.server.auth.handlers.authorize import AuthorizationRequest
from mcp.server.auth.provider import construct_redirect_uri
from pydantic import ValidationError

from api.models import ConnectedApp, RegisteredApp
from api.oauth.grants import Consent, issue_code
from api.oauth.registration import (
    LOOPBACK,
    Addresses,
    addresses_of,
    app_of,
    app_scheme,
    host_of,
    known_scopes,
    redirect_of,
)
from settings_app.api_keys import ApiKey
from settings_app.forms import OWN, PalaceChoiceForm
from settings_app.pages import (
    POLICY,
    PageRequest,
    no_variables_in_reports,
    signed_in_form,
    signed_in_page,
)

DENIED = "The user did not allow it."
ODD = "The app asked in a way that cannot be answered. Connect again from the app."
SCOPE_NEEDED = "Choose at least one, or deny access."
ErrorCode = Literal[
    "access_denied",
    "invalid_request",
    "invalid_scope",
    "invalid_target",
    "unsupported_response_type",
]
# BASE64URL of a SHA-256 digest, without padding.
_CHALLENGE = re.compile(r"\A[A-Za-z0-9_-]{43}\Z")
UNKNOWN_APP = "The app is not registered here. Remove this server from the app, then connect again."
WRONG_REDIRECT = "The app asks to be answered at an address that it has not registered."
NOT_ONE_OF_OURS = "None of these scopes can be allowed; there are read and write."


@no_variables_in_reports
@signed_in_form
def authorize(request: PageRequest) -> HttpResponse:
    """Asks the user each time; an app gets a code only by a click on this page."""
    known = addresses_of(request)
    if known is None:
        raise Http404
    try:
        asked = read_request(request.GET, known)
    except NoSuchApp as error:
        context = {"sentence": str(error)}
        return render(request, "api/authorize_refused.html", context, status=400)
    except RefusedRequest as error:
        if app_scheme(error.location):  # Nobody has clicked, so no program is opened.
            return render(request, "api/authorize_refused.html", {"sentence": ODD}, status=400)
        return _sent_to(error.location)
    if request.method != "POST":
        return _consent_page(request, asked, ConsentForm(asked))
    if request.POST.get("do") != "allow":
        return _sent_to(asked.answers.error("access_denied", DENIED))
    form = ConsentForm(asked, request.POST)
    if not form.is_valid():
        return _consent_page(request, asked, form, status=400)
    code = issue_code(
        Consent(
            owner=request.user,
            app=asked.app,
            scopes=form.cleaned_data["scopes"],
            subject=form.chosen_subject(),
            resource=known.resource,
            code_challenge=asked.code_challenge,
            redirect_uri=asked.answers.redirect_uri,
            redirect_uri_given=asked.redirect_uri_given,
        )
    )
    return _sent_to(asked.answers.code(code))


@signed_in_page
def connected_apps(request: PageRequest) -> HttpResponse:
    apps = ConnectedApp.objects.filter(owner=request.user).select_related("key")
    # Connected apps first, newest first.
    order = (F("key__revoked_at").asc(nulls_first=True), "-pk")
    context = {"apps": apps.order_by(*order), "addresses": addresses_of(request)}
    return render(request, "api/connected_apps.html", context)


@signed_in_form
def end_app(request: PageRequest, uuid: UUID) -> HttpResponse:
    apps = ConnectedApp.objects.select_related("key")
    app = get_object_or_404(apps, owner=request.user, uuid=uuid)
    if request.method != "POST":
        return render(request, "api/end_app.html", {"app": app})
    app.end()
    messages.success(request, f"“{app.key.name}” is disconnected: it opens nothing any more.")
    return redirect("connected_apps")


class ConsentForm(PalaceChoiceForm):
    """What the app may do, at most what it requested, and in which palace."""

    field_order = ("scopes", "palaces", "subject")

    scopes = forms.MultipleChoiceField(
        label="What may it do?",
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": SCOPE_NEEDED},
    )

    def __init__(self, asked: AskedFor, data: Any = None) -> None:
        super().__init__(data, initial={"scopes": asked.scopes, "palaces": OWN})
        choices = [each for each in ApiKey.Scope.choices if each[0] in asked.scopes]
        scopes = self.fields["scopes"]
        assert isinstance(scopes, forms.MultipleChoiceField)  # noqa: S101 - as declared above.
        scopes.choices = choices


def _consent_page(
    request: PageRequest, asked: AskedFor, form: ConsentForm, *, status: int = 200
) -> HttpResponse:
    target = urlsplit(asked.answers.redirect_uri)
    context = {
        "app": asked.app,
        "host": target.netloc,
        "is_local": host_of(asked.answers.redirect_uri) in LOOPBACK,
        "scheme": app_scheme(asked.answers.redirect_uri),
        "form": form,
    }
    response = render(request, "api/authorize.html", context, status=status)
    # Browsers apply it to the form's redirect, too. It cannot name IPv6 addresses.
    is_named = target.netloc and "[" not in target.netloc and not context["scheme"]
    source = f"{target.scheme}://{target.netloc}" if is_named else f"{target.scheme}:"
    policy = POLICY.replace("form-action 'self'", f"form-action 'self' {source}")
    response.headers["Content-Security-Policy"] = policy
    return response


def _sent_to(location: str) -> HttpResponse:
    """A redirect by GET (RFC 9700, 4.12) to a registered address."""
    # Django's redirect refuses schemes of native apps.
    return HttpResponse(status=303, headers={"Location": location})


class NoSuchApp(Exception):
    """The app or its redirect address is unknown, so there is no redirect."""


class RefusedRequest(Exception):
    """The app gets the reason.

    Attributes:
        location: The redirect with the error.
    """

    def __init__(self, location: str) -> None:
        super().__init__(location)
        self.location = location


@dataclass(frozen=True, slots=True)
class Answers:
    """Redirects with answers: each has the app's `state`, and the issuer (RFC 9207)."""

    issuer: str
    redirect_uri: str
    state: str | None

    def code(self, code: str) -> str:
        return self._to(code=code)

    def error(self, error: ErrorCode, description: str) -> str:
        return self._to(error=error, error_description=description)

    def _to(self, **parameters: str) -> str:
        return construct_redirect_uri(
            self.redirect_uri, **parameters, state=self.state, iss=self.issuer
        )


@dataclass(frozen=True, slots=True)
class AskedFor:
    app: RegisteredApp
    answers: Answers
    scopes: list[str]
    code_challenge: str
    redirect_uri_given: bool


def read_request(query: QueryDict, known: Addresses) -> AskedFor:
    """
    Raises:
        NoSuchApp: The sentence is for the user.
        RefusedRequest: Anything else is wrong.
    """
    app = app_of(query.get("client_id", ""))
    if app is None:
        raise NoSuchApp(UNKNOWN_APP)
    redirect_uri = redirect_of(app, query.get("redirect_uri"))
    if redirect_uri is None:
        raise NoSuchApp(WRONG_REDIRECT)
    answers = Answers(known.issuer, redirect_uri, query.get("state"))
    asked = _validated(query, answers)
    if not known.is_resource(asked.resource):
        said = f"This server issues tokens for {known.resource} only."
        raise RefusedRequest(answers.error("invalid_target", said))
    scopes = known_scopes(asked.scope)
    if not scopes:
        raise RefusedRequest(answers.error("invalid_scope", NOT_ONE_OF_OURS))
    given = asked.redirect_uri is not None
    return AskedFor(app, answers, scopes, asked.code_challenge, given)


def _validated(query: QueryDict, answers: Answers) -> AuthorizationRequest:
    """
    Raises:
        RefusedRequest: A field is missing, wrong or repeated.
    """
    repeated = [name for name, values in query.lists() if len(values) > 1]
    if repeated:
        said = f"Each field may be sent once; repeated: {', '.join(sorted(repeated))}."
        raise RefusedRequest(answers.error("invalid_request", said))
    try:
        asked = AuthorizationRequest.model_validate(query.dict())
    except ValidationError as error:
        wrong = {each["loc"][0] for each in error.errors() if each["type"] == "literal_error"}
        code: ErrorCode = "invalid_request"
        if "response_type" in wrong:
            code = "unsupported_response_type"
        raise RefusedRequest(answers.error(code, stringify_pydantic_error(error))) from None
    if not _CHALLENGE.match(asked.code_challenge):
        said = "code_challenge: it must be the S256 digest of the verifier, 43 characters."
        raise RefusedRequest(answers.error("invalid_request", said))
    return asked
