"""All that a server is asked with the key alone."""

from __future__ import annotations

from loci_client.facts import FactCalls
from loci_client.service import ServiceCalls


class ServerCalls(FactCalls, ServiceCalls):
    pass
