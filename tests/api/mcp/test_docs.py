from __future__ import annotations

import json
import re

from django.conf import settings

from api.mcp import prompts, resources
from api.mcp.tools import TOOLS

PAGE = (settings.BASE_DIR / "docs" / "mcp.md").read_text()


def test_every_tool_is_documented_with_what_it_needs():
    documented = dict(re.findall(r"^\| `([a-z_]+)` \| (read|write) \|", PAGE, re.MULTILINE))
    assert documented == {tool.name: tool.scope for tool in TOOLS.values()}


def test_resources_and_prompts_are_documented():
    names = [each.uri_template for each in resources.TEMPLATES]
    names += [each.name for each in prompts.shown()]
    assert [name for name in names if f"`{name}`" not in PAGE] == []


def test_what_is_to_be_copied_is_json():
    pieces = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    assert [list(json.loads(piece)["mcpServers"]) for piece in pieces] == [["loci"], ["loci"]]
