"""A path converter for ids: any storable text, with slashes and line breaks."""

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
    """Register the converter, for paths such as `<id:name>`."""
    register_converter(AnyId, "id")
