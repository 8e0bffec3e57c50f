"""Command line entry point for `python -m satchel`."""

from satchel.cli.entry import main

if __name__ == "__main__":
    main()
