"""The ASGI application, served by uvicorn."""

from __future__ import annotations

import ctypes
import gc
import logging
import os
import sys
from collections.abc import Callable
from threading import Event, Thread

import django
from django.conf import settings
from django.template.loader import get_template
from django.urls import get_resolver, reverse

from config import environment

# Of the GNU C library's allocator, by the variable that sets it otherwise: its number in malloc.h,
# and our value.
_ALLOCATOR = {"MALLOC_ARENA_MAX": (-8, 2), "MALLOC_MMAP_THRESHOLD_": (-3, 128 * 1024)}


def _limit_free_memory() -> None:
    """Keep the allocator from holding ever more memory that is free. Before there are threads.

    By itself it makes up to eight arenas a core, and raises the size from which a piece has pages
    of its own to the largest piece that was freed, up to 32 MB. An index is copied at each change
    of its palace: in arenas each copy leaves a hole, which is too small for the next one.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        for name, (number, value) in _ALLOCATOR.items():
            if name not in os.environ:
                mallopt(number, value)


_limit_free_memory()
# What is imported stays: looking through it again and again for garbage takes a tenth of the time.
gc.disable()
environment.serves_web = True
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup(set_prefix=False)

# Models can be imported only after the setup.
from language.analyzer import load_detection  # noqa: E402
from llm import embedding  # noqa: E402
from llm.embedding import model_build  # noqa: E402
from llm.errors import LLMError  # noqa: E402
from llm.tokens import count_tokens  # noqa: E402

_all_is_imported = Event()


def _load_models() -> None:
    """Load models that are built, and prepare pages; the first use builds the other models."""
    _attempt("load the embedding model", embedding.load)
    _attempt("load the tokenizer", _load_tokenizer)
    _attempt("load the detection of languages", load_detection)
    _all_is_imported.wait()
    _attempt("prepare the pages", _prepare_pages)
    # As below, but without a collection, for which requests would wait.
    gc.freeze()


def _attempt(what: str, do: Callable[[], None]) -> None:
    """What fails is tried again at its first use, which shows the error to its caller."""
    try:
        do()
    except Exception as error:  # noqa: BLE001 - whatever it is, it must not stop what comes after.
        said = error if isinstance(error, LLMError) else repr(error)
        logging.getLogger(__name__).warning("Could not %s at the start: %s", what, said)


def _load_tokenizer() -> None:
    if model_build.is_built(settings.MODELS_DIR):
        count_tokens("A first text.")


def _prepare_pages() -> None:
    """Compile addresses and templates, which the first page would wait for: a third of a second."""
    reverse("memory")
    folder = settings.BASE_DIR / "templates"
    for file in sorted(folder.rglob("*.html")):
        get_template(file.relative_to(folder).as_posix())


def _collect_what_is_new() -> None:
    """Leave what there is from the start out of garbage collections, which come more often then.

    All requests wait while garbage is collected: after 50,000 new objects that took 50 to 150 ms,
    after 10,000 a fifth. What is in use during one, such as by slow requests, is looked at again
    in the seventh after it, or the 49th. Without the 250,000 objects of the start these are short.
    """
    gc.enable()
    gc.collect()
    gc.freeze()
    # It counts the oldest objects: the next such collection waits until new ones are a quarter.
    gc.collect()
    gc.set_threshold(10_000, 6, 6)


# In a thread, so that neither requests nor the first question wait for them. They are loaded while
# the rest is imported: most of that time is the disk's, or spent outside of Python.
Thread(target=_load_models, name="load models", daemon=True).start()

from api.mcp.http import with_mcp  # noqa: E402
from api.oauth.http import with_oauth  # noqa: E402
from config.body_limits import limited  # noqa: E402
from config.middleware import (  # noqa: E402
    OneThreadHandler,
    with_request_id,
    without_cookies_of_probes,
    without_row_access,
)

_pages = without_cookies_of_probes(OneThreadHandler())
application = with_request_id(without_row_access(limited(with_mcp(with_oauth(_pages)))))
# The first request would import all pages.
get_resolver().url_patterns  # noqa: B018
_collect_what_is_new()
_all_is_imported.set()
