"""``priory demo``: the tour on real data in two minutes."""

from __future__ import annotations

import click


@click.command(epilog="Example: priory demo --out tour")
@click.option("--out", default=".", metavar="FOLDER", show_default=True, help="Where the tour leaves its files.")
def demo(out: str) -> None:
    """Learn, judge, explain, forget, audit: the tour on data that comes with priory."""
    from priory.demo import main

    main(out)
