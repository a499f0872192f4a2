from __future__ import annotations

from datetime import UTC, datetime
from email.message import EmailMessage

import pytest

from palace.transfer.importers import detect, mail, read
from palace.transfer.importers.mail import JUNK, ONLY_FILES
from tests.transfer.importers.exports import write_zip


def message(text, *, key="1", subject="The pier", sender="Ana Horvat <ana@example.org>", **headers):
    made = EmailMessage()
    made["From"] = sender
    made["To"] = "ben@example.org"
    made["Subject"] = subject
    made["Date"] = "Sat, 01 Jun 2024 12:00:00 +0200"
    made["Message-ID"] = f"<{key}@example.org>"
    for name, value in headers.items():
        made[name.replace("_", "-")] = value
    made.set_content(text)
    return made


def mbox(path, *messages):
    head = b"From ana@example.org Sat Jun  1 10:00:00 2024\n"
    bodies = [each.as_bytes().replace(b"\nFrom ", b"\n>From ") for each in messages]
    path.write_bytes(b"".join(head + body + b"\n" for body in bodies))
    return path


def read_all(path):
    assert detect(path) is mail.FORMAT
    return list(read(path, mail.FORMAT))


def words(found):
    return [(turn.speaker, turn.text) for turn in found.turns]


def test_a_thread_is_a_conversation_in_the_order_of_its_times(tmp_path):
    question = message("Which pier?\n\nFrom here I see none. ", subject="Größe des Piers")
    other = message("Tea?", key="2", subject="Tea", sender="cleo@example.org")
    answer = message(
        "Pier 3.",
        key="3",
        subject="Re: AW: Größe des Piers",
        sender="Ben <ben@example.org>",
        References="<1@example.org> <x@example.org>",
    )
    answer.replace_header("Date", "Sat, 01 Jun 2024 11:00:00 +0200")
    pier, tea = read_all(mbox(tmp_path / "all.mbox", question, other, answer))
    assert words(pier) == [
        ("Ben", "Pier 3."),
        ("Ana Horvat", "Which pier?\n\nFrom here I see none. "),
    ]
    assert (pier.transcript.external_id, pier.transcript.title) == (
        "1@example.org",
        "Größe des Piers",
    )
    assert pier.turns[1].said_at == datetime(2024, 6, 1, 10, tzinfo=UTC)
    assert pier.turns[1].metadata == {
        "mail": {"subject": "Größe des Piers", "to": "ben@example.org"}
    }
    assert words(tea) == [("cleo@example.org", "Tea?")]


def test_pages_become_text_and_files_and_spam_are_counted(tmp_path):
    page = message("<p>Pier&nbsp;3</p><p>at 21:15</p>", key="1")
    page.replace_header("Content-Type", "text/html; charset=utf-8")
    both = message("Both", key="2")
    both.add_alternative("<p>Both</p>", subtype="html")
    both.add_attachment(b"1", maintype="image", subtype="png", filename="pier.png")
    nothing = message("", key="3")
    spam = message("Win!", key="4", X_Gmail_Labels="Spam, Unread")
    found = read_all(mbox(tmp_path / "a", page, both, nothing, spam))
    assert [words(each) for each in found[:2]] == [
        [("Ana Horvat", "Pier 3\n\nat 21:15")],
        [("Ana Horvat", "Both")],
    ]
    assert found[0].turns[0].metadata["mail"]["html"].startswith("<p>Pier")
    assert dict(found[1].left_out) == {"file": 1}
    assert [dict(each.skipped) for each in found[2:]] == [{ONLY_FILES: 1}, {JUNK: 1}]


@pytest.mark.parametrize(
    ("charset", "text"), [("iso-8859-1", "Größe"), ("koi8-r", "Пирс"), ("no-such", "Größe")]
)
def test_other_encodings_are_read(tmp_path, charset, text):
    encoded = text.encode("utf-8" if charset == "no-such" else charset)
    path = tmp_path / "a.eml"
    path.write_bytes(
        b"From: Ana <ana@example.org>\r\nSubject: A\r\nMIME-Version: 1.0\r\n"
        b"Content-Type: text/plain; charset=" + charset.encode() + b"\r\n\r\n" + encoded + b"\r\n"
    )
    (found,) = read_all(path)
    assert words(found) == [("Ana", text)]


def test_the_mails_of_a_folder_are_threaded_together(tmp_path):
    answer = message("Pier 3.", key="0", In_Reply_To="<1@example.org>")
    members = {
        "mails/a.eml": message("Which pier?").as_string(),
        "mails/b.eml": answer.as_string(),
    }
    (found,) = read_all(write_zip(tmp_path / "mails.zip", members))
    assert [text for _, text in words(found)] == ["Which pier?", "Pier 3."]


def test_a_thread_that_comes_in_parts_keeps_its_id(tmp_path, monkeypatch):
    monkeypatch.setattr(mail, "_MOST_WAITING", 5)
    answers = [message(f"Pier {n}.", key=str(n), References="<0@example.org>") for n in (1, 2)]
    first, second = read_all(mbox(tmp_path / "a.mbox", *answers))
    assert first.transcript.external_id == second.transcript.external_id == "0@example.org"
    assert [words(each)[0][1] for each in (first, second)] == ["Pier 1.", "Pier 2."]
