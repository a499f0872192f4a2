"""What coding agents and assistants start: the MCP bridge and the hooks.

They wait for it, so it needs nothing but the standard library, and asks a running Loci over HTTP.
"""
