"""Loci's tools over MCP: remember a sentence, and recall it.

Needs: pip install mcp; a running Loci and LOCI_API_KEY.
"""

import asyncio
import os

import httpx2
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

ADDRESS = os.environ.get("LOCI_URL", "http://localhost:8000") + "/mcp"
HEADERS = {"Authorization": f"Bearer {os.environ['LOCI_API_KEY']}"}


async def main():
    async with (
        httpx2.AsyncClient(headers=HEADERS) as http,
        Client(streamable_http_client(ADDRESS, http_client=http)) as loci,
    ):
        print([tool.name for tool in (await loci.list_tools()).tools])
        await loci.call_tool("save_memory", {"content": "I just moved to Lisbon."})
        found = await loci.call_tool("recall", {"query": "Where do I live?"})
        print(found.content[0].text)


asyncio.run(main())
