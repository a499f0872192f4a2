"""The static files, listed once a process: each test client would look through their folders."""

from __future__ import annotations

from whitenoise.middleware import WhiteNoiseMiddleware

_list_files = WhiteNoiseMiddleware.add_files_from_finders
_listed: dict[str, object] = {}


def list_once() -> None:
    WhiteNoiseMiddleware.add_files_from_finders = _add_listed


def _add_listed(middleware: WhiteNoiseMiddleware) -> None:
    if not _listed:
        _list_files(middleware)
        _listed.update(middleware.files)
    middleware.files.update(_listed)
