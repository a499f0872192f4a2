"""Where a user's own model may be.

A user names an address and this server calls it. Unguarded, that would let everybody who has an
account ask whatever this server can reach: its database's port, the cloud's metadata service, the
neighbours. So, unless LOCI_PRIVATE_PROVIDERS allows it, only public addresses are called.

`check_address` refuses at once what can be told from the address itself, for a form to say so.
What keeps the network closed is `llm.transport`: it looks the name up, checks every answer here,
and connects to the very address that was checked, so a name that changes its mind gains nothing.
"""

from __future__ import annotations

import socket
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from urllib.parse import urlsplit

from django.conf import settings

from llm.errors import ModelRefused

# Behind these 96 bits a gateway between IPv6 and IPv4 puts the IPv4 address it leads to.
_NAT64 = IPv6Network("64:ff9b::/96")
# What Python's `is_global` lets through, or did in some version, and what is there.
_NOT_PUBLIC = [
    ip_network("192.0.0.0/24"),  # A provider's own devices; a cloud's metadata among them.
    ip_network("168.63.129.16/32"),  # Within Azure: the host's service for its machines.
    ip_network("::ffff:0:0/96"),  # Any IPv4 address, written as one of IPv6,
    ip_network("2002::/16"),  # or put into one by a way long given up.
    ip_network("fec0::/10"),  # The old private networks of IPv6.
    ip_network("3fff::/20"),  # Documentation.
]


def check_address(url: str) -> None:
    """
    Raises:
        ModelRefused: a user's model may not be there, as far as can be told without asking anyone.
    """
    if settings.PRIVATE_PROVIDERS:
        return
    host = (urlsplit(url).hostname or "").rstrip(".")
    if host == "localhost" or host.endswith(".localhost"):
        raise ModelRefused(not_allowed(host))
    try:
        # Numbers in any of their spellings (127.1, 0x7f000001), and never a name.
        found = socket.getaddrinfo(host, None, flags=socket.AI_NUMERICHOST)
    except (OSError, UnicodeError):
        return
    if not all(is_public(str(answer[4][0])) for answer in found):
        raise ModelRefused(not_allowed(host))


def resolve(host: str, port: int) -> list[str]:
    """The host's addresses, as numbers, each once.

    Raises:
        OSError: it has none, or nobody could be asked.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError:
        raise OSError("not a name") from None
    return list(dict.fromkeys(str(answer[4][0]) for answer in found))


def is_public(address: str) -> bool:
    """Whether the number leads out into the world, and not to this machine or its neighbours."""
    number = ip_address(address)
    if isinstance(number, IPv6Address) and number in _NAT64:
        number = IPv4Address(int(number) & 0xFFFFFFFF)
    if number.is_multicast or number.is_reserved or not number.is_global:
        return False
    return not any(number in network for network in _NOT_PUBLIC)


def not_allowed(host: str) -> str:
    return (
        f"{host} is within this server's own network, where a model of your own may not be. Use a "
        "public address, or ask whoever runs Loci to allow it (LOCI_PRIVATE_PROVIDERS)."
    )
