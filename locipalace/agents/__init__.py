"""Programs that coding agents and assistants start: the MCP bridge and the hooks.

Agents wait for them, so they use only the standard library, and call a running Loci over HTTP.
"""
