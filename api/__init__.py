"""APIs for programs: REST, MCP, OAuth, the OpenAI-compatible proxy, and mem0's client."""
