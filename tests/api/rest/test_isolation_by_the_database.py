"""The walk of `test_isolation` once more, without the application's own filters."""

from __future__ import annotations

from tests.api.rest.test_isolation import *  # noqa: F403
from tests.unfiltered import _no_filters, without_the_database  # noqa: F401


def test_without_the_database_a_stranger_would_get_there(strangers_program, drawer):
    """Else the walk would prove nothing: the application's filters really are out."""
    without_the_database()
    response = strangers_program.get(f"/v1/drawers/{drawer.uuid}/?user_id=ada")
    assert response.status_code == 200
