"""All tools there are: importing this lists them."""

from api.mcp.registry import TOOLS, Tool
from api.mcp.tools import episodes, facts, places, recall_tools, working

__all__ = ["TOOLS", "Tool", "episodes", "facts", "places", "recall_tools", "working"]
