"""The client's own version; the server has another."""

__version__ = "0.1.0"
