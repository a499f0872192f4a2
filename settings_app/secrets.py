"""Keys to other people's services, encrypted before they are stored.

Fernet (AES-128-CBC with HMAC-SHA256) under a key derived from the deployment's secret:
without it, the table or a backup of it reveals nothing.
"""

from __future__ import annotations

import base64

from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings


class Unreadable(Exception):
    """It was encrypted under another secret, or is damaged."""


def seal(secret: str) -> str:
    """Encrypted, as text; the same secret never looks the same twice."""
    return _cipher().encrypt(secret.encode()).decode()


def unseal(sealed: str) -> str:
    """
    Raises:
        Unreadable: LOCI_SECRET_KEY is not the one it was sealed under.
    """
    try:
        return _cipher().decrypt(sealed.encode()).decode()
    except InvalidToken:
        raise Unreadable from None


def _cipher() -> Fernet:
    derived = HKDF(hashes.SHA256(), length=32, salt=None, info=b"settings_app.secrets")
    return Fernet(base64.urlsafe_b64encode(derived.derive(settings.SECRET_KEY.encode())))
