"""All calls that are bound to the key, not to a namespace or conversation."""

from __future__ import annotations

from loci_client.facts import FactCalls
from loci_client.service import ServiceCalls


class ServerCalls(FactCalls, ServiceCalls):
    pass
