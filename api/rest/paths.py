"""Ids in addresses: any text that can be stored, slashes and line breaks included."""

from __future__ import annotations

from django.urls import register_converter


class AnyId:
    """One character or more. A server decodes `%2F` before it looks for the view."""

    regex = r"[\s\S]+"

    def to_python(self, value: str) -> str:
        return value

    def to_url(self, value: str) -> str:
        return value


def register() -> None:
    """Let addresses say `<id:name>`."""
    register_converter(AnyId, "id")
