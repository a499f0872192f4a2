"""`python -m locipalace` is the command `locipalace`."""

from locipalace.cli.main import main

if __name__ == "__main__":
    main()
