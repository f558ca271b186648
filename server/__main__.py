"""`python -m server` and the `deskbook` command."""

from .cli import main

if __name__ == "__main__":
    main()
