"""For messages: the command that starts this program, which depends on its installation."""

from __future__ import annotations

from pathlib import Path

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


def sign_in_at(address: str) -> str:
    """The command that prints a new address to sign in to the Loci that runs there."""
    return SIGN_IN if IS_INSTALLED else f"{SIGN_IN} --base {address}"


def start_at(port: int) -> str:
    """The command that starts Loci on this port."""
    return f"{START} --port {port}" if IS_INSTALLED else f"{START} PORT={port}"
