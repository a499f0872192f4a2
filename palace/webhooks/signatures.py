"""Signatures of Standard Webhooks (version 1, symmetric).

HMAC-SHA256 of `id.seconds.body` under the secret's bytes; the secret is written as `whsec_` and
these bytes in base64.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets

STARTS_WITH = "whsec_"
SECRET_BYTES = 32


def new_secret() -> str:
    return STARTS_WITH + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def signed_headers(secret: str, message_id: str, seconds: int, body: bytes) -> dict[str, str]:
    """
    Args:
        message_id: The same for each attempt; receivers deduplicate by it.
        seconds: Unix time of sending; receivers refuse old ones.
    """
    key = base64.b64decode(secret.removeprefix(STARTS_WITH))
    signed = f"{message_id}.{seconds}.".encode() + body
    signature = base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(seconds),
        "webhook-signature": f"v1,{signature}",
    }
