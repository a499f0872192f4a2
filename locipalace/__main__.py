"""`python -m locipalace` is the command `locipalace`."""

import sys
from pathlib import Path

if not __package__:
    # As `python /its/folder/locipalace`, which works from any folder: assistants start it so.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from locipalace.cli.main import main

if __name__ == "__main__":
    main()
