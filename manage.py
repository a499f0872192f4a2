#!/usr/bin/env python
"""Django's command line, for developers and operators; `locipalace` is the one for everybody."""

from __future__ import annotations

import sys

try:
    import django  # noqa: F401 - the first of the packages, to tell whether they are there.
except ModuleNotFoundError:
    sys.exit("Loci: its packages are missing. Run `make setup`, then `.venv/bin/python manage.py`.")

from config.command_line import main

if __name__ == "__main__":
    main()
