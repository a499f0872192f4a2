"""Doors for programs: REST, MCP and the OpenAI-compatible proxy."""
