from __future__ import annotations

import pytest

from palace.transfer.export import stream
from tests.furnished_palaces import furnish
from tests.transfer.palaces import furnished


@pytest.fixture
def full(palace):
    """Alice's palace with something of everything."""
    return furnish(palace, "something of everything", furnished)


@pytest.fixture
def exported(tmp_path):
    """Writes a palace into a file, and says which."""

    def write(palace, name="palace.zip"):
        path = tmp_path / name
        path.write_bytes(b"".join(stream(palace)))
        return path

    return write
