"""How a program on this machine reaches Loci: the address, a key, and one request over HTTP."""

from __future__ import annotations

import http.client
import json
import os
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from locipalace import __version__, installation

CONNECT_TIMEOUT_S = 5.0
PROFILE = "client.json"
NO_KEY = (
    "Loci has no key for this program. Run `{command} connect CLIENT --yes`, which makes one, or "
    "set LOCI_API_KEY."
)
NO_LOCI = "What answers at the address is no Loci. Check LOCI_URL."
ELSEWHERE = (
    "The status {status} came back, not in Loci's form: from another program, or a proxy before "
    "Loci. Check LOCI_URL, and whether Loci runs."
)
KEY_REFUSED = (
    "Loci refuses the key. `{command} connect CLIENT --yes --new-key` makes a new one; a "
    "LOCI_API_KEY that is set goes first."
)


class CannotReach(Exception):
    """The message says why, and what to do."""


class NotRunning(CannotReach):
    """No server answers at the address."""


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    content_type: str
    body: bytes

    def json(self) -> Any:
        """The body; None if it is not JSON."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            return None

    def problem(self) -> str:
        """What the server says went wrong, as a sentence."""
        if self.status < 400:
            return NO_LOCI
        if self.status == 401:
            return KEY_REFUSED.format(command=installation.COMMAND)
        fields = self.json()
        detail = fields.get("detail") if isinstance(fields, dict) else None
        return str(detail or ELSEWHERE.format(status=self.status))


@dataclass(frozen=True, slots=True)
class Connection:
    """
    Attributes:
        url: Without a trailing slash.
    """

    url: str
    key: str = field(repr=False)

    def post(
        self, path: str, body: bytes, *, timeout_s: float, headers: dict[str, str] | None = None
    ) -> Answer:
        """
        Args:
            timeout_s: The longest wait for an answer.

        Raises:
            CannotReach: there is no answer in time; NotRunning: nobody is there.
        """
        address = urlsplit(self.url)
        sent = {
            "Authorization": f"Bearer {self.key}",
            "Content-Type": "application/json",
            "User-Agent": f"locipalace/{__version__}",
            **(headers or {}),
        }
        try:
            with closing(self._open(min(CONNECT_TIMEOUT_S, timeout_s))) as opened:
                opened.connect()
                opened.sock.settimeout(timeout_s)
                opened.request("POST", address.path + path, body, sent)
                response = opened.getresponse()
                kind = response.getheader("Content-Type", "")
                return Answer(response.status, kind, response.read())
        except TimeoutError as error:
            raise CannotReach(f"Loci at {self.url} did not answer in time. Try again.") from error
        except (OSError, http.client.HTTPException, UnicodeError) as error:
            raise NotRunning(_away(self.url, error)) from error

    def _open(self, timeout_s: float) -> http.client.HTTPConnection:
        address = urlsplit(self.url)
        kind = (
            http.client.HTTPSConnection if address.scheme == "https" else http.client.HTTPConnection
        )
        return kind(address.hostname or "", address.port, timeout=timeout_s)


def find() -> Connection:
    """From LOCI_API_KEY and LOCI_URL, else from the profile in the data folder.

    Call `installation.enter` before.

    Raises:
        CannotReach: there is no key; NotRunning.
    """
    key, url = from_environment()
    if not key:
        profile = read_profile()
        key, url = profile.get("key", ""), profile.get("url", "")
    if not key:
        raise CannotReach(NO_KEY.format(command=installation.COMMAND))
    if not key.isascii() or not key.isprintable() or " " in key:
        raise CannotReach("The key has characters that no key has. Copy it again.")
    return Connection(_checked(url or _running()), key)


def from_environment() -> tuple[str, str]:
    """Key and address; the profile's key is used only for the profile's address."""
    key, url = (os.environ.get(name, "").strip() for name in ("LOCI_API_KEY", "LOCI_URL"))
    if url and not key:
        raise CannotReach("LOCI_URL is set, but no LOCI_API_KEY. Set both, or neither.")
    return key, url


def profile_path() -> Path:
    return installation.home() / PROFILE


def read_profile() -> dict[str, str]:
    """The profile; empty if there is none.

    Raises:
        CannotReach: it cannot be read.
    """
    path = profile_path()
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise CannotReach(
            f"{path} cannot be read ({error}). Delete it and connect again."
        ) from error
    if not isinstance(fields, dict):
        raise CannotReach(f"{path} is no profile: it holds no object. Delete it and connect again.")
    return {name: text for name, text in fields.items() if isinstance(text, str)}


def write_profile(url: str, key: str) -> None:
    """
    Args:
        url: Empty for the Loci that runs on this machine, whatever its port is then.
    """
    path = profile_path()
    path.parent.mkdir(parents=True, mode=0o700, exist_ok=True)
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        aside.touch(mode=0o600)
        aside.write_text(json.dumps({"url": url, "key": key} if url else {"key": key}) + "\n")
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)


def _running() -> str:
    """The address that `locipalace run` wrote; it remains after a kill, when no server answers."""
    try:
        written = json.loads((installation.home() / "run.lock").read_text(encoding="utf-8"))
        return str(written["address"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise NotRunning(_not_running()) from error


def _not_running() -> str:
    return f"Loci is not running. Start it with `{installation.START}`, then try again."


def _checked(url: str) -> str:
    try:
        address = urlsplit(url)
        is_address = bool(address.hostname) and (address.port or 1) > 0
    except ValueError:
        is_address = False
    if not is_address or address.scheme not in ("http", "https"):
        raise CannotReach(f"LOCI_URL is an address such as http://localhost:8000, not {url!r}.")
    return url.rstrip("/")


def _away(url: str, error: Exception) -> str:
    if isinstance(error, ConnectionRefusedError):
        return (
            f"Loci does not answer at {url}. Start it with `{installation.START}`, then try again."
        )
    return f"Loci at {url} cannot be reached ({error}). Check the address, then try again."
