"""Registration, codes and tokens, as the endpoints of the MCP SDK ask for them.

The SDK's handlers check requests: grant types, PKCE, redirect addresses, expiry, scopes. What
they do not check is in `api.oauth.http`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from mcp.server.auth.provider import (
    AuthorizationCode,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    TokenError,
)
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken

from api.mcp.server import in_thread
from api.oauth import grants, registration
from api.oauth.grants import Issued

OF_NO_USE = "It was used before, has expired, was revoked, or is another app's. Authorize again."


Provider = OAuthAuthorizationServerProvider[Any, Any, Any]


def provider_of(resource: str) -> Provider:
    """For requests about one resource: codes and tokens of another are unknown here."""
    # It lacks what no handler of ours asks for: authorizing is a page (`api.oauth.views`), and
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
