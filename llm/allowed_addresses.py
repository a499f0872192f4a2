"""Which addresses a user's own model may have (protection from SSRF).

A user enters an address and this server calls it. Unguarded, any account could send requests to
whatever this server can reach: its database, the cloud's metadata service, its network. So only
public addresses are called, unless LOCI_PRIVATE_PROVIDERS is set.

`check_address` gives early feedback in forms, from the address alone. The protection itself is
`llm.transport`: it resolves the name, checks every result here, and connects to the checked
address, so that DNS rebinding does not work.
"""

from __future__ import annotations

import socket
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from urllib.parse import urlsplit

from django.conf import settings

from llm.errors import ModelRefused

# The prefix of IPv4 addresses behind a NAT64 gateway.
_NAT64 = IPv6Network("64:ff9b::/96")
# Private networks that some version of Python's `is_global` accepts.
_NOT_PUBLIC = [
    ip_network("192.0.0.0/24"),  # IETF protocol assignments; some clouds' metadata services.
    ip_network("168.63.129.16/32"),  # Azure's host services.
    ip_network("::ffff:0:0/96"),  # IPv4-mapped addresses.
    ip_network("2002::/16"),  # 6to4.
    ip_network("fec0::/10"),  # Deprecated site-local addresses.
    ip_network("3fff::/20"),  # Documentation.
]


def check_address(url: str) -> None:
    """
    Raises:
        ModelRefused: the address is private, as far as can be seen without resolving it.
    """
    if settings.PRIVATE_PROVIDERS:
        return
    host = (urlsplit(url).hostname or "").rstrip(".")
    if host == "localhost" or host.endswith(".localhost"):
        raise ModelRefused(not_allowed(host))
    try:
        # Accepts all numeric notations (127.1, 0x7f000001), never a name.
        found = socket.getaddrinfo(host, None, flags=socket.AI_NUMERICHOST)
    except (OSError, UnicodeError):
        return
    if not all(is_public(str(answer[4][0])) for answer in found):
        raise ModelRefused(not_allowed(host))


def resolve(host: str, port: int) -> list[str]:
    """Resolve the host to its distinct IP addresses.

    Raises:
        OSError: it has none, or resolution failed.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError:
        raise OSError("not a name") from None
    return list(dict.fromkeys(str(answer[4][0]) for answer in found))


def is_public(address: str) -> bool:
    """Whether the IP address is public, not this machine's or its network's."""
    number = ip_address(address)
    if isinstance(number, IPv6Address) and number in _NAT64:
        number = IPv4Address(int(number) & 0xFFFFFFFF)
    if number.is_multicast or number.is_reserved or not number.is_global:
        return False
    return not any(number in network for network in _NOT_PUBLIC)


def not_allowed(host: str) -> str:
    return (
        f"{host} is in this server's own network, which is not allowed for your own models. Use a "
        "public address, or ask the administrator to allow it (LOCI_PRIVATE_PROVIDERS)."
    )
