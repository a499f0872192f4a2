"""The client's version, independent of the server's."""

__version__ = "0.1.0"
