from __future__ import annotations

from palace.transfer.importers import MARKDOWN, code_editors, detect, read
from palace.transfer.importers.conversation import UNKNOWN_FORM
from tests.transfer.importers.agent_exports import cursor as chat
from tests.transfer.importers.exports import write_zip


def words(found):
    return [(turn.role, turn.text) for turn in found.turns]


def test_rules_and_bold_words_within_an_answer_stay_in_it(tmp_path):
    answer = "Pier 3.\n\n---\n\n## 1. **User**\n\n**User**\n\n- pays"
    path = tmp_path / "cursor_the_pier.md"
    path.write_text(chat(("User", "  Which pier?"), ("Cursor", answer), ("User", "Thanks\n\n")))
    assert detect(path) is code_editors.CURSOR_FORMAT
    (found,) = read(path, code_editors.CURSOR_FORMAT)
    assert words(found) == [("user", "  Which pier?"), ("assistant", answer), ("user", "Thanks")]
    assert (found.transcript.title, found.transcript.agent) == ("The pier", "Cursor")


def test_a_later_export_of_a_chat_has_its_id(tmp_path):
    ids = []
    for name, more in (("a.md", []), ("b.md", [("Cursor", "Pier 3.")])):
        path = tmp_path / name
        path.write_text(chat(("User", "Which pier?"), *more))
        ids += [each.transcript.external_id for each in read(path, detect(path))]
    assert ids[0] == ids[1]


def test_a_zip_of_several_is_read_and_what_is_none_is_counted(tmp_path):
    members = {
        "cursor_a.md": chat(("User", "Q")),
        "cursor_b.md": chat(title="Empty"),
        "readme.md": "# Chats",
    }
    path = write_zip(tmp_path / "chats.zip", members)
    assert detect(path) is code_editors.CURSOR_FORMAT
    first, second = read(path, code_editors.CURSOR_FORMAT)
    assert words(first) == [("user", "Q")]
    assert dict(second.skipped) == {UNKNOWN_FORM: 1}


def test_other_markdown_stays_markdown(tmp_path):
    path = tmp_path / "note.md"
    path.write_text("# The pier\n\n---\n\n**User**\n\nQ\n")
    assert detect(path) is MARKDOWN


def test_some_chats_in_a_folder_of_notes_hide_none_of_them(tmp_path):
    notes = {f"note {number}.md": "# The pier\n\nIt is the third.\n" for number in range(3)}
    path = write_zip(tmp_path / "notes.zip", {"cursor_a.md": chat(("User", "Q")), **notes})
    assert detect(path) is MARKDOWN
    assert sum(len(each.turns) for each in read(path, MARKDOWN)) >= len(notes)


def test_taken_up_again_further_back_its_new_messages_have_new_ids(tmp_path):
    exports = ([("User", "Q"), ("Cursor", "A")], [("User", "Q"), ("Cursor", "B")])
    ids = []
    for messages in exports:
        path = tmp_path / "a.md"
        path.write_text(chat(*messages))
        ids.append(
            [
                turn.external_id
                for each in read(path, code_editors.CURSOR_FORMAT)
                for turn in each.turns
            ]
        )
    assert ids[0][0] == ids[1][0]
    assert ids[0][1] != ids[1][1]
