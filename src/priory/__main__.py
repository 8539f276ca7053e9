"""``python -m priory`` is ``priory``."""

from priory.cli.run import entry

if __name__ == "__main__":
    entry()
