"""Run the command line as `python -m lemmata.cli`."""

from lemmata.cli import main

if __name__ == "__main__":
    main()
