"""Pages: allow an app, see which are connected, end one."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from django import forms
from django.contrib import messages
from django.db.models import F
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render

from api.models import ConnectedApp
from api.oauth.addresses import LOOPBACK, addresses_of, app_scheme, host_of
from api.oauth.authorization_request import AskedFor, NoSuchApp, RefusedRequest, read_request
from api.oauth.grants import Consent, issue_code
from settings_app.api_keys import ApiKey
from settings_app.pages import (
    POLICY,
    PageRequest,
    no_variables_in_reports,
    signed_in_form,
    signed_in_page,
)
from settings_app.palace_choice import OWN, PalaceChoiceForm

DENIED = "The user did not allow it."
SCOPE_NEEDED = "Choose at least one, or deny access."


@no_variables_in_reports
@signed_in_form
def authorize(request: PageRequest) -> HttpResponse:
    """Asks the user, each time; only a click here gives an app a code."""
    known = addresses_of(request)
    if known is None:
        raise Http404
    try:
        asked = read_request(request.GET, known)
    except NoSuchApp as error:
        context = {"sentence": str(error)}
        return render(request, "api/authorize_refused.html", context, status=400)
    except RefusedRequest as error:
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
    # Those in use first, the newest of them at the top.
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
    """What the app may do, and where: no more than it asked for, and one's own palace at first."""

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
    # Browsers apply it to where the form's answer leads, too. They know no address of IPv6 in it.
    is_named = target.netloc and "[" not in target.netloc and not context["scheme"]
    source = f"{target.scheme}://{target.netloc}" if is_named else f"{target.scheme}:"
    policy = POLICY.replace("form-action 'self'", f"form-action 'self' {source}")
    response.headers["Content-Security-Policy"] = policy
    return response


def _sent_to(location: str) -> HttpResponse:
    """By GET, whatever the request was (RFC 9700, 4.12), to an address that is registered."""
    # Django's own redirect refuses the schemes of apps.
    return HttpResponse(status=303, headers={"Location": location})
