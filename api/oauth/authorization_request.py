"""What an app asks a user to allow: read and checked, before and after the user has decided."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from django.http import QueryDict
from mcp.server.auth.errors import stringify_pydantic_error
from mcp.server.auth.handlers.authorize import AuthorizationRequest
from mcp.server.auth.provider import construct_redirect_uri
from pydantic import ValidationError

from api.models import RegisteredApp
from api.oauth.addresses import Addresses
from api.oauth.registration import app_of, known_scopes, redirect_of

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


class NoSuchApp(Exception):
    """App or redirect address are unknown, so nobody is sent anywhere."""


class RefusedRequest(Exception):
    """The app gets the reason.

    Attributes:
        location: Where the browser goes with the error.
    """

    def __init__(self, location: str) -> None:
        super().__init__(location)
        self.location = location


@dataclass(frozen=True, slots=True)
class Answers:
    """Where answers go; each has the app's `state`, and the issuer against mix-ups (RFC 9207)."""

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
