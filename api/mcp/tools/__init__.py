"""All tools: importing this package registers them."""

from api.mcp.registry import TOOLS, Tool
from api.mcp.tools import episodes, facts, places, recall_tools, working

__all__ = ["TOOLS", "Tool", "episodes", "facts", "places", "recall_tools", "working"]
