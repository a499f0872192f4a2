from __future__ import annotations

import io

import pytest

from config.backup import CHUNK, TAG, BackupError, EncryptingFile, decrypt, is_encrypted

HEADER = 34
PHRASE = "correct horse"


def encrypted(content: bytes, passphrase: str = PHRASE) -> bytes:
    out = io.BytesIO()
    sealed = EncryptingFile(out, passphrase)
    for first in range(0, len(content), 1000):
        sealed.write(content[first : first + 1000])
    sealed.finish()
    return out.getvalue()


def decrypted(data: bytes, passphrase: str = PHRASE) -> bytes:
    out = io.BytesIO()
    decrypt(io.BytesIO(data), out, passphrase)
    return out.getvalue()


@pytest.mark.parametrize("size", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK])
def test_what_goes_in_comes_out(size):
    content = bytes(n % 251 for n in range(size))
    sealed = encrypted(content)
    assert is_encrypted(io.BytesIO(sealed))
    # A few bytes may stand in it by chance.
    assert size < 64 or content[:64] not in sealed
    assert decrypted(sealed) == content


def test_the_same_content_never_looks_the_same():
    assert encrypted(b"word")[HEADER:] != encrypted(b"word")[HEADER:]


def test_another_passphrase_opens_nothing():
    with pytest.raises(BackupError, match="passphrase"):
        decrypted(encrypted(b"word"), "wrong")


def chunks(sealed: bytes) -> list[bytes]:
    body = sealed[HEADER:]
    return [body[at : at + CHUNK + TAG] for at in range(0, len(body), CHUNK + TAG)]


@pytest.mark.parametrize(
    "change",
    [
        lambda parts: parts[:-1],
        lambda parts: [parts[1], parts[0], *parts[2:]],
        lambda parts: [parts[0], *parts[2:]],
        lambda parts: [*parts, parts[-1]],
        lambda parts: [parts[0], parts[1][:-1] + bytes([parts[1][-1] ^ 1]), *parts[2:]],
        lambda parts: [*parts[:-1], parts[-1][:5]],
    ],
    ids=["cut off", "swapped", "left out", "added", "changed", "torn"],
)
def test_chunks_that_do_not_fit_are_noticed(change):
    sealed = encrypted(bytes(3 * CHUNK))
    with pytest.raises(BackupError):
        decrypted(sealed[:HEADER] + b"".join(change(chunks(sealed))))


def test_a_header_cannot_be_changed_nor_ask_for_all_of_the_memory():
    sealed = bytearray(encrypted(b"word"))
    sealed[8] = 40
    with pytest.raises(BackupError, match="damaged"):
        decrypted(bytes(sealed))
    with pytest.raises(BackupError, match="damaged"):
        decrypted(bytes(sealed[:20]))
