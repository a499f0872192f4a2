"""Read settings from the environment. A value that makes no sense is refused in one sentence.

The role of the process is not in the environment: its program sets it before the settings load. If
no signing key is configured, Loci makes one and keeps it in LOCI_HOME. For messages, here are also
the commands that start this program, which depend on its installation.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import secrets
import socket
from collections.abc import Collection, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

import dj_database_url
from django.core.exceptions import ImproperlyConfigured
from kombu import Exchange, Queue
from limits import parse_many

BASE_DIR = Path(__file__).resolve().parent.parent
# A wheel has the program's packages in `locipalace/_app`; see `locipalace.installation`.
IS_INSTALLED = BASE_DIR.name == "_app"
START = "locipalace run" if IS_INSTALLED else "make run"
MANAGE = "locipalace manage" if IS_INSTALLED else "manage.py"
KEY = "locipalace key" if IS_INSTALLED else "manage.py api_key"
SIGN_IN = "locipalace sign-in" if IS_INSTALLED else "manage.py sign_in_link"
IMPORT = "locipalace import" if IS_INSTALLED else "manage.py import_chats"
# With the name of a page of the documentation: how it is read here.
DOCS_PAGE = "`locipalace docs {}`" if IS_INSTALLED else "docs/{}.md"
REPAIR = "Install locipalace again" if IS_INSTALLED else "Run `make setup`"
# A web process: many threads share a few connections.
serves_web = False
# Likewise, for `manage.py`.
runs_command = False
# The maximum of any number: a longer wait in seconds overflows.
MOST = 2**31 - 1
LEAST_TOKEN = 16
# Stores of facts' vectors, and the module that the client of each is imported as.
VECTOR_STORES = {
    "postgres": "psycopg",
    "qdrant": "qdrant_client",
    "chroma": "chromadb",
    "faiss": "faiss",
    "milvus": "pymilvus",
}
# Options of libpq for a server elsewhere. If it vanishes without a word, as with its machine or the
# network, this is noticed within a minute; as systems are set, after two hours.
KEEP_ALIVE = {
    "keepalives_idle": 20,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}
_REDIS_SCHEMES = {"redis", "rediss", "unix"}
KEY_FILE = "secret_key"


def sign_in_at(address: str) -> str:
    """The command that prints a new address to sign in to the Loci that runs there."""
    return SIGN_IN if IS_INSTALLED else f"{SIGN_IN} --base {address}"


def start_at(port: int) -> str:
    """The command that starts Loci on this port."""
    return f"{START} --port {port}" if IS_INSTALLED else f"{START} PORT={port}"


def env_text(name: str, default: str = "") -> str:
    """The value without spaces around it; the default for one that is not set, or empty."""
    return os.environ.get(name, "").strip() or default


def env_list(name: str) -> list[str]:
    return [part.strip() for part in env_text(name).split(",") if part.strip()]


def env_origins(name: str) -> list[str]:
    """Addresses without paths, such as https://app.example.org, each as a browser spells it."""
    return [_origin(name, value) for value in env_list(name)]


def env_public_origin(name: str) -> str:
    """One origin, by HTTP on this machine only; empty for none."""
    value = env_text(name)
    origin = _origin(name, value) if value else ""
    parts = urlsplit(origin)
    if parts.scheme == "http" and parts.hostname not in {"localhost", "127.0.0.1", "::1"}:
        raise ImproperlyConfigured(f"{name} is {value!r}; it must begin with https://.")
    return origin


def _origin(name: str, value: str) -> str:
    origin = value.removesuffix("/").lower()
    parts = _parts_of(origin)
    is_whole = origin == f"{parts.scheme}://{parts.netloc}" and "@" not in origin
    is_whole &= not parts.netloc.endswith(":")
    if not (is_whole and parts.hostname and parts.scheme in {"http", "https"}):
        raise ImproperlyConfigured(
            f"{name} is {value!r}; it must be an address without a path, such as "
            "https://loci.example.org."
        )
    # A browser leaves out the usual port.
    return origin.removesuffix({"https": ":443", "http": ":80"}[parts.scheme])


def _parts_of(url: str) -> SplitResult:
    """The parts of an address; empty ones where it is none, as with half a bracket."""
    try:
        parts = urlsplit(url)
        return parts if parts.port != 0 else urlsplit("")
    except ValueError:
        return urlsplit("")


def env_bool(name: str, *, default: bool) -> bool:
    value = env_text(name).lower()
    if value not in {"", "0", "1", "false", "true", "no", "yes"}:
        raise ImproperlyConfigured(f"{name} is {value!r}; it must be true or false.")
    return value in {"1", "true", "yes"} if value else default


def env_choice(name: str, default: str, choices: Collection[str]) -> str:
    value = env_text(name, default).lower()
    if value not in choices:
        raise ImproperlyConfigured(f"{name} is {value!r}; it must be one of {', '.join(choices)}.")
    return value


def env_number(
    name: str,
    default: float,
    *,
    least: float = 0,
    most: float = MOST,
    above_least: bool = False,
) -> float:
    """
    Args:
        least, most: The bounds; both are allowed.
        above_least: The lower bound itself is not allowed.
    """
    value = env_text(name)
    try:
        number = float(value or default)
    except ValueError:
        raise ImproperlyConfigured(f"{name} is {value!r}; it must be a number.") from None
    # False for NaN, too.
    if least <= number <= most and not (above_least and number == least):
        return number
    from_least = f"above {least:g}" if above_least else f"{least:g} or more"
    raise ImproperlyConfigured(f"{name} is {value}; it must be {from_least}, up to {most:.15g}.")


def env_whole(name: str, default: int, *, least: int = 0, most: int = MOST) -> int:
    number = env_number(name, default, least=least, most=most)
    if not number.is_integer():
        raise ImproperlyConfigured(f"{name} is {number:g}; it must be a whole number.")
    return int(number)


def env_seconds(name: str, default: float, *, most: float = MOST) -> float:
    """A time above zero."""
    return env_number(name, default, most=most, above_least=True)


def env_rate(name: str, default: str) -> str:
    """Rate limits in the notation of the `limits` library; empty for none."""
    value = os.environ.get(name, default).strip()
    try:
        windows = parse_many(value) if value else []
    except ValueError:
        windows = None
    if windows is None or any(each.amount < 1 for each in windows):
        raise ImproperlyConfigured(
            f"{name} is {value!r}; it must be a rate such as 600/minute or 10/second;5000/day, "
            "or empty for no limit."
        )
    return value


def env_log_level(name: str, default: str) -> str:
    value = env_text(name, default).upper()
    if value not in logging.getLevelNamesMapping():
        raise ImproperlyConfigured(
            f"{name} is {value.lower()!r}; it must be debug, info, warning or error."
        )
    return value


def logging_of(level: str, *, as_json: bool) -> dict[str, Any]:
    """Django's `LOGGING`: a line a record on standard error, for people or as JSON."""
    console = {
        "class": "logging.StreamHandler",
        "formatter": "json" if as_json else "plain",
        "filters": ["quiet"],
    }
    loggers: dict[str, Any] = {"config.request_log": {"level": "INFO" if as_json else "WARNING"}}
    if as_json:
        # The server has its own handlers, which would log the whole address of each request.
        loggers["uvicorn"] = {"handlers": [], "propagate": True}
        loggers["uvicorn.access"] = {"handlers": [], "propagate": False}
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "plain": {"format": "%(levelname)s %(name)s: %(message)s"},
            "json": {"()": "config.json_formats.JsonFormatter"},
        },
        "filters": {"quiet": {"()": "config.celery.Quiet"}},
        "handlers": {"console": console},
        "root": {"handlers": ["console"], "level": level},
        "loggers": loggers,
    }


def env_token(name: str) -> str:
    """A secret token that callers must send; empty for none."""
    value = env_text(name)
    if value and (len(value) < LEAST_TOKEN or not value.isascii()):
        # Without the value in the error: it is a secret.
        raise ImproperlyConfigured(
            f"{name} must be {LEAST_TOKEN} or more letters, digits and signs of ASCII; "
            "`openssl rand -hex 32` makes one."
        )
    return value


def task_queues(*names: str) -> list[Queue]:
    """A worker that is not assigned any takes all. Each has an exchange of its own: in Celery's
    default one, every task would go to every queue."""
    return [Queue(name, Exchange(name), routing_key=name) for name in names]


def count_in(folder: Path) -> None:
    """Store this process's counters in files of this folder, so that any process can add them up.

    Call it before `prometheus_client` is imported. Containers may share process ids.
    """
    own = folder / socket.gethostname()
    own.mkdir(parents=True, mode=0o700, exist_ok=True)
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(own)


def database_of(url: str) -> dict[str, Any]:
    """An entry of Django's `DATABASES`."""
    # Without the value in the error: it may contain a password.
    refused = ImproperlyConfigured(
        "DATABASE_URL must begin with postgresql://, such as "
        "postgresql://user:password@host:5432/name."
    )
    try:
        if urlsplit(url).scheme not in {"postgres", "postgresql"}:
            raise refused
        # No connection outlives its request: each request runs in a thread of its own, so it
        # could not be used again, and would only fill the server up.
        return dict(dj_database_url.parse(url, conn_max_age=0))
    except ValueError:
        raise refused from None


def check_vector_store(store: str, url: str, api_key: str, collection: str) -> None:
    """Refuse a vector store that is not installed or has no address."""
    if not re.fullmatch(r"[a-z][a-z0-9_]{1,40}", collection):
        raise ImproperlyConfigured(
            f"LOCI_VECTOR_STORE_COLLECTION is {collection!r}; it must be 2 to 41 lower-case "
            "letters, digits and underscores, and begin with a letter."
        )
    if store == "postgres":
        if url or api_key:
            raise ImproperlyConfigured(
                "LOCI_VECTOR_STORE_URL and LOCI_VECTOR_STORE_API_KEY are for other stores than "
                "postgres; set LOCI_VECTOR_STORE, too."
            )
    elif find_spec(VECTOR_STORES[store]) is None:
        raise ImproperlyConfigured(
            f"LOCI_VECTOR_STORE is {store}, whose client is not installed; run: "
            f"pip install 'locipalace[{store}]'"
        )
    elif store != "faiss" and _parts_of(url).scheme not in {"http", "https"}:
        # Without the value in the error: it may contain a password.
        raise ImproperlyConfigured(
            f"LOCI_VECTOR_STORE_URL must be the address of a {store} server, such as "
            "http://localhost:6333: Loci runs several processes, and only one can open a folder."
        )


def redis_address(url: str) -> str:
    # Without the value in the error: it may contain a password.
    if url.partition("://")[0] not in _REDIS_SCHEMES or not _parts_of(url).scheme:
        raise ImproperlyConfigured(
            "REDIS_URL must begin with redis://, rediss:// or unix://, such as "
            "redis://:password@host:6379/0."
        )
    return url


def read_keys(home: Path) -> list[str]:
    """The signing key, created on first use, readable only by its owner; then older ones.

    Raises:
        ImproperlyConfigured: the folder cannot be made, or the file of the keys is empty.
    """
    path = home / KEY_FILE
    if not path.exists():
        _make_home(home)
        scratch = _written(path, [secrets.token_urlsafe(50)])
        # A hard link never overwrites: concurrent first starts all read the winner's key.
        with contextlib.suppress(FileExistsError):
            path.hardlink_to(scratch)
        scratch.unlink()
    keys = path.read_text().split()
    if not keys:
        raise ImproperlyConfigured(
            f"{path} is empty: the signing key is lost. Put a copy of it back. Without one, delete "
            "the file: a new key is made, people sign in again, and what is encrypted, such as "
            "their API keys of models, has to be entered again."
        )
    return keys


def _make_home(home: Path) -> None:
    """
    Raises:
        ImproperlyConfigured: no folder can be there.
    """
    try:
        home.mkdir(parents=True, mode=0o700, exist_ok=True)
    except (FileExistsError, FileNotFoundError, NotADirectoryError) as error:
        raise ImproperlyConfigured(
            f"The data folder {home} cannot be made: {error.strerror}. Set LOCI_HOME to a folder "
            "that can be written."
        ) from None


def keep_keys(home: Path, keys: Sequence[str]) -> None:
    """Store the keys, the current one first; atomically, even if killed."""
    path = home / KEY_FILE
    _written(path, keys).replace(path)


def _written(path: Path, keys: Sequence[str]) -> Path:
    """A file beside the path, on disk: under its final name a power cut does not empty it."""
    scratch = path.with_name(f"{path.name}.{os.getpid()}")
    scratch.touch(mode=0o600)
    with scratch.open("w") as file:
        file.write("\n".join(keys))
        file.flush()
        os.fsync(file.fileno())
    return scratch
