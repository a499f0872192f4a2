"""MCP: the palace as tools, resources and prompts for assistants."""
