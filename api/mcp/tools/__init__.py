"""All tools: importing this package registers them."""

from api.mcp.registry import TOOLS, Tool

__all__ = ["TOOLS", "Tool", "episodes", "facts", "places", "recall_tools", "working"]
