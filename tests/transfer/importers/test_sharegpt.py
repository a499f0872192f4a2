from __future__ import annotations

import pytest

from palace.transfer.importers import detect, message_lists, read
from palace.transfer.importers.conversation import UNKNOWN_FORM, UNKNOWN_ROLE
from tests.transfer.importers.chat_exports import sharegpt as conversation
from tests.transfer.importers.exports import write_json, write_lines

ITEM = conversation(
    *(("human", " Which pier?\r\n"), ("gpt", "Pier 3.")),
    *(("observation", "Open"), ("referee", "?"), ("gpt", None)),
    system="Be brief.",
)


@pytest.mark.parametrize("write", [write_lines, write_json])
def test_lists_and_lines_are_read(tmp_path, write):
    path = write(tmp_path / "talks.json", [ITEM, {"items": ITEM["conversations"]}])
    assert detect(path) is message_lists.SHAREGPT_FORMAT
    first, second = read(path, message_lists.SHAREGPT_FORMAT)
    assert [(turn.role, turn.text) for turn in first.turns] == [
        ("system", "Be brief."),
        ("user", " Which pier?\r\n"),
        ("assistant", "Pier 3."),
        ("tool", "Open"),
    ]
    assert dict(first.skipped) == {UNKNOWN_ROLE: 1, UNKNOWN_FORM: 1}
    assert len(second.turns) == 3
    assert second.transcript.external_id.startswith("~")
