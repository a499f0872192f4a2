"""Encryption of stored secrets, such as keys of model providers.

Fernet (AES-128-CBC with HMAC-SHA256) under a key derived from the deployment's secret:
without it, the table or a backup of it reveals nothing. Secrets encrypted under one of
LOCI_OLD_SECRET_KEYS stay readable, until `manage.py rotate_keys` encrypts them again.
"""

from __future__ import annotations

import base64

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings


class Unreadable(Exception):
    """The stored secret was encrypted with another key, or is damaged."""


def seal(secret: str) -> str:
    """Encrypt as text; equal secrets have different results."""
    return _cipher(settings.SECRET_KEY).encrypt(secret.encode()).decode()


def unseal(sealed: str) -> str:
    """
    Raises:
        Unreadable: It is sealed under a key that is neither the current nor an old one.
    """
    try:
        return _ciphers().decrypt(sealed.encode()).decode()
    except InvalidToken:
        raise Unreadable from None


def is_current(sealed: str) -> bool:
    """Whether it is encrypted under LOCI_SECRET_KEY itself."""
    try:
        _cipher(settings.SECRET_KEY).decrypt(sealed.encode())
    except InvalidToken:
        return False
    return True


def _ciphers() -> MultiFernet:
    return MultiFernet(map(_cipher, (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)))


def _cipher(key: str) -> Fernet:
    derived = HKDF(hashes.SHA256(), length=32, salt=None, info=b"settings_app.secrets")
    return Fernet(base64.urlsafe_b64encode(derived.derive(key.encode())))
