"""All tools there are: importing this lists them."""

from api.mcp.registry import TOOLS, Tool
from api.mcp.tools import episodes, facts, places, recalling, working

__all__ = ["TOOLS", "Tool", "episodes", "facts", "places", "recalling", "working"]
