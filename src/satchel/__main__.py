"""`python -m satchel`."""

from satchel.surfaces.entry import main

if __name__ == "__main__":
    main()
