"""A coding agent's sessions lie in the wings of their project folders."""

from __future__ import annotations

from language.extraction import WingFound
from palace.models import Room, Wing
from palace.storage.intake import wing_for
from tests.transfer.import_runs import run_import
from tests.transfer.importers.agent_exports import claude_code
from tests.transfer.importers.exports import write_lines


def rooms_after(palace, tmp_path, *folders):
    """The wing and title of each folder's session, in the order of import."""
    for number, folder in enumerate(folders):
        session = f"0b7e3f2a-1111-4222-8333-{number:012}"
        talk = claude_code("user", f"Which pier is it? ({number})", cwd=folder, sessionId=session)
        run_import(palace, write_lines(tmp_path / f"{session}.jsonl", [talk]))
    rooms = Room.objects.filter(palace=palace).select_related("wing").order_by("number")
    return [(room.wing.name, room.title) for room in rooms]


def test_the_sessions_of_a_folder_share_a_wing_with_their_own_titles(palace, tmp_path):
    folders = ["/home/ana/ferry", "/home/ana/tea", "/home/ana/ferry", "/srv/ferry", "C:\\dev\\tea"]
    assert rooms_after(palace, tmp_path, *folders) == [
        ("ferry", "Which pier is it? (0)"),
        ("tea", "Which pier is it? (1)"),
        ("ferry", "Which pier is it? (2)"),
        ("srv/ferry", "Which pier is it? (3)"),
        ("dev/tea", "Which pier is it? (4)"),
    ]
    wings = Wing.objects.filter(palace=palace).exclude(number=Wing.UNSORTED)
    assert set(wings.values_list("kind", flat=True)) == {"project"}


def test_a_wing_that_has_the_name_already_gets_the_sessions(palace, tmp_path):
    wing = wing_for(palace, WingFound("topic", "Ferry"))
    assert rooms_after(palace, tmp_path, "/home/ana/ferry")[0][0] == "Ferry"
    assert wing.rooms.count() == 1
