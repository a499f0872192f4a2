"""The walk of `test_isolation` once more, without the application's own filters."""

from __future__ import annotations

import pytest

from tests.unfiltered import _no_filters, without_the_database  # noqa: F401
from tests.views.test_isolation import *  # noqa: F403

# The same walk with the filters is in the everyday run, and both of REST and MCP.
pytestmark = pytest.mark.exhaustive


def test_without_the_database_a_stranger_would_get_there(bobs, drawer):
    """Else the walk would prove nothing: the application's filters really are out."""
    without_the_database()
    assert bobs.get(drawer.get_absolute_url()).status_code == 200
