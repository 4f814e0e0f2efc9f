"""Entry point of `python -m rung`."""

from rung.cli.main import main

if __name__ == "__main__":
    main()
