"""`python -m satchel`."""

from satchel.surfaces.cli import main

if __name__ == "__main__":
    main()
