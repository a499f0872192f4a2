"""All tools there are: importing this lists them."""

from palace.mcp.registry import TOOLS, Tool
from palace.mcp.tools import episodes, facts, places, recalling, working

__all__ = ["TOOLS", "Tool", "episodes", "facts", "places", "recalling", "working"]
