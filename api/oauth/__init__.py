"""OAuth 2.1 for apps that connect to /mcp: registration, consent, tokens, and the list of apps."""
