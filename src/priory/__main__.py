"""``python -m priory`` is ``priory``."""

from priory.cli.entry_point import entry

if __name__ == "__main__":
    entry()
