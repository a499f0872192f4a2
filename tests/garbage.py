"""Collecting tests makes a million objects that all stay: no garbage is looked for among them.

Collection takes a quarter less time so, and later searches look only at what tests make.
"""

from __future__ import annotations

import gc

import pytest


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection():
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
