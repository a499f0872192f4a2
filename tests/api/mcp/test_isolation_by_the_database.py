"""The walk of `test_isolation` once more, without the application's own filters."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User

from api.mcp.server import call
from api.mcp.tools import TOOLS
from palace.models import Palace
from tests.api.mcp.test_isolation import *  # noqa: F403
from tests.api.mcp.test_isolation import caller
from tests.unfiltered import _no_filters, without_the_database  # noqa: F401


@pytest.mark.django_db
def test_without_the_database_a_stranger_would_get_there(drawer):
    """Else the walk would prove nothing: the application's filters really are out."""
    without_the_database()
    stranger = User.objects.create_user("stranger")
    Palace.objects.own(stranger)
    shown = call(TOOLS["get_drawer"], caller(stranger), {"id": str(drawer.uuid)})
    assert not shown.is_error
