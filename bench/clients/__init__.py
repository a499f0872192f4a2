"""Clients and libraries of others, called as their users call them, with Loci as their server."""
