"""The endpoints that apps call: metadata, registration, tokens, revocation.

The MCP SDK's handlers check grant types, PKCE, redirect addresses, expiry and scopes; this module
checks the rest. The page on which a user allows an app is a Django view: `api.oauth.views`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from io import BytesIO
from typing import Any, cast

from django.core.handlers.asgi import ASGIRequest
from django.db import InterfaceError, OperationalError
from mcp.server.auth.handlers.register import RegistrationHandler
from mcp.server.auth.handlers.token import TokenHandler
from mcp.server.auth.json_response import PydanticJSONResponse
from mcp.server.auth.middleware.client_auth import AuthenticationError, ClientAuthenticator
from mcp.server.auth.provider import (
    AuthorizationCode,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    TokenError,
)
from mcp.server.auth.settings import ClientRegistrationOptions
from mcp.server.transport_security import RequestBodyLimitMiddleware
from mcp.shared.auth import (
    OAuthClientInformationFull,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from redis import RedisError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, Router

from api.mcp.http import (
    Application,
    Receive,
    Scope,
    Send,
    check_host,
    check_https,
    check_origin,
    refuse,
    with_cors,
    with_hsts,
)
from api.mcp.server import in_thread
from api.oauth import grants, registration
from api.oauth.grants import Issued
from api.oauth.registration import SCOPES, Addresses, addresses_of
from api.rest.problems import Problem
from settings_app.throttling import TooManyAttempts, count_registration

MOST_BYTES = 64 << 10
_ADDRESSES = "loci.addresses"
_NEVER_KEPT = {"Cache-Control": "no-store", "Pragma": "no-cache"}
_METADATA = (
    registration.PROTECTED_RESOURCE,
    registration.PROTECTED_RESOURCE + registration.RESOURCE_PATH,
    registration.AUTHORIZATION_SERVER,
)
_ENDPOINTS = (registration.REGISTER, registration.TOKEN, registration.REVOKE)
PATHS = {*_METADATA, *_ENDPOINTS}
OFF = (
    "Apps cannot connect by OAuth here: LOCI_PUBLIC_URL is not set, and this is no loopback "
    "address. Use an API key."
)
WRONG_RESOURCE = "This server issues tokens for {} only."
FORM_NEEDED = "Send a form: application/x-www-form-urlencoded, each field once."
OF_NO_USE = "It was used before, has expired, was revoked, or is another app's. Authorize again."


Provider = OAuthAuthorizationServerProvider[Any, Any, Any]


def with_oauth(application: Application) -> Application:
    """Wrap the application so that the endpoints are served by the SDK's handlers."""

    async def routed(scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"].rstrip("/") if scope["type"] == "http" else ""
        if path in _METADATA:
            # Public; apps in web pages read it, too.
            await with_cors(with_hsts(_answer), ["*"])({**scope, "path": path}, receive, send)
        elif path in _ENDPOINTS:
            await with_cors(with_hsts(_answer))({**scope, "path": path}, receive, send)
        else:
            await application(scope, receive, send)

    return routed


async def _answer(scope: Scope, receive: Receive, send: Send) -> None:
    try:
        request = ASGIRequest(dict(scope), BytesIO())
        check_host(request)
        check_https(request)
        if scope["path"] in _ENDPOINTS:
            check_origin(request)
        known = _known(request)
        if scope["path"] == registration.REGISTER and request.method == "POST":
            await in_thread(lambda: _count(request))
        await _endpoints({**scope, _ADDRESSES: known}, receive, send)
    except (Problem, OperationalError, InterfaceError, RedisError) as error:
        await refuse(send, error)


def _known(request: ASGIRequest) -> Addresses:
    """
    Raises:
        Problem: 404, OAuth is off for requests like this one.
    """
    known = addresses_of(request)
    if known is None:
        raise Problem(404, "not_found", OFF)
    return known


def _count(request: ASGIRequest) -> None:
    """
    Raises:
        Problem: 429, this address has registered too many apps.
    """
    try:
        count_registration(request)
    except TooManyAttempts as error:
        headers = {"Retry-After": str(error.rest_s)}
        raise Problem(429, "too_many_requests", str(error), headers=headers) from None


async def protected_resource(request: Request) -> Response:
    """RFC 9728."""
    known = _addresses(request)
    metadata = {
        "resource": known.resource,
        "authorization_servers": [known.issuer],
        "scopes_supported": list(SCOPES),
        "resource_name": "Loci",
    }
    return PydanticJSONResponse(ProtectedResourceMetadata.model_validate(metadata))


async def authorization_server(request: Request) -> Response:
    """RFC 8414."""
    known = _addresses(request)
    metadata = {
        "issuer": known.issuer,
        "authorization_endpoint": known.issuer + registration.AUTHORIZE,
        "token_endpoint": known.issuer + registration.TOKEN,
        "registration_endpoint": known.issuer + registration.REGISTER,
        "revocation_endpoint": known.issuer + registration.REVOKE,
        "scopes_supported": list(SCOPES),
        "response_types_supported": ["code"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "token_endpoint_auth_methods_supported": ["none"],
        "revocation_endpoint_auth_methods_supported": ["none"],
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": True,
    }
    return PydanticJSONResponse(OAuthMetadata.model_validate(metadata))


async def register(request: Request) -> Response:
    if request.headers.get("Content-Type", "").partition(";")[0].strip() != "application/json":
        return _error("invalid_client_metadata", "Send application/json.")
    options = ClientRegistrationOptions(enabled=True, default_scopes=list(SCOPES))
    handler = RegistrationHandler(provider_of(_addresses(request).resource), options)
    response = await handler.handle(request)
    response.headers.update(_NEVER_KEPT)
    return response


async def token(request: Request) -> Response:
    known = _addresses(request)
    if not await _is_plain_form(request):
        return _error("invalid_request", FORM_NEEDED)
    # The SDK's handler reads no `resource`.
    resource = (await request.form()).get("resource")
    if resource is not None and not known.is_resource(str(resource)):
        return _error("invalid_target", WRONG_RESOURCE.format(known.resource))
    provider = provider_of(known.resource)
    handler = TokenHandler(provider, ClientAuthenticator(provider))
    response: Response = await handler.handle(request)
    return response


async def revoke(request: Request) -> Response:
    """RFC 7009. The SDK's handler asks public clients for a secret."""
    if not await _is_plain_form(request):
        return _error("invalid_request", FORM_NEEDED)
    text = (await request.form()).get("token")
    if not text:
        return _error("invalid_request", "Send the token to revoke.")
    try:
        provider = provider_of(_addresses(request).resource)
        client = await ClientAuthenticator(provider).authenticate_request(request)
    except AuthenticationError as error:
        return _error("invalid_client", error.message, status=401)
    await in_thread(lambda: grants.revoke(str(text), client.client_id))
    return Response(headers=_NEVER_KEPT)


async def _is_plain_form(request: Request) -> bool:
    """Also that no field is repeated: two readers could take a different one each."""
    kind = request.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        return False
    form = await request.form()
    return len(form) == len(form.multi_items())


def _addresses(request: Request) -> Addresses:
    known = request.scope[_ADDRESSES]
    assert isinstance(known, Addresses)  # noqa: S101 - put there above.
    return known


def _error(code: str, description: str, *, status: int = 400) -> Response:
    body = {"error": code, "error_description": description}
    return JSONResponse(body, status_code=status, headers=_NEVER_KEPT)


def _route(path: str, endpoint: Callable[[Request], Awaitable[Response]], method: str) -> Route:
    return Route(path, endpoint, methods=[method])


_endpoints = RequestBodyLimitMiddleware(
    Router(
        [
            _route(_METADATA[0], protected_resource, "GET"),
            _route(_METADATA[1], protected_resource, "GET"),
            _route(_METADATA[2], authorization_server, "GET"),
            _route(registration.REGISTER, register, "POST"),
            _route(registration.TOKEN, token, "POST"),
            _route(registration.REVOKE, revoke, "POST"),
        ]
    ),
    MOST_BYTES,
)


def provider_of(resource: str) -> Provider:
    """The provider for one resource; codes and tokens of others are unknown to it."""
    # It lacks methods that our handlers do not call: authorizing is a page (`api.oauth.views`), and
    # /mcp and revocation read tokens themselves.
    return cast(Provider, _Provider(resource))


class _Provider:
    def __init__(self, resource: str) -> None:
        self.resource = resource

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        app = await in_thread(lambda: registration.app_of(client_id))
        return registration.information_of(app) if app is not None else None

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        redirects = registration.checked_redirects(client_info)
        await in_thread(lambda: registration.register_app(client_info, redirects))

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        code = await in_thread(
            lambda: grants.find_code(authorization_code, client.client_id, self.resource)
        )
        if code is None:
            return None
        return AuthorizationCode.model_validate(
            {
                "code": authorization_code,
                "scopes": code.scopes,
                "expires_at": code.expires_at.timestamp(),
                "client_id": client.client_id,
                "code_challenge": code.code_challenge,
                "redirect_uri": code.redirect_uri,
                "redirect_uri_provided_explicitly": code.redirect_uri_given,
                "resource": code.resource,
            }
        )

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        return await _issued(
            lambda: grants.exchange_code(authorization_code.code, client.client_id, self.resource)
        )

    async def load_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: str
    ) -> RefreshToken | None:
        token = await in_thread(
            lambda: grants.find_refresh_token(refresh_token, client.client_id, self.resource)
        )
        if token is None:
            return None
        return RefreshToken(
            token=refresh_token,
            client_id=client.client_id,
            scopes=token.scopes,
            expires_at=int(token.expires_at.timestamp()),
            resource=self.resource,
        )

    async def exchange_refresh_token(
        self,
        client: OAuthClientInformationFull,
        refresh_token: RefreshToken,
        scopes: list[str],
    ) -> OAuthToken:
        return await _issued(
            lambda: grants.refresh(refresh_token.token, client.client_id, self.resource, scopes)
        )


async def _issued(issue: Callable[[], Issued | None]) -> OAuthToken:
    """
    Raises:
        TokenError: Nothing was issued.
    """
    issued = await in_thread(issue)
    if issued is None:
        raise TokenError("invalid_grant", OF_NO_USE)
    return OAuthToken(
        access_token=issued.access,
        expires_in=int(grants.ACCESS_LASTS.total_seconds()),
        scope=" ".join(issued.scopes),
        refresh_token=issued.refresh,
    )
