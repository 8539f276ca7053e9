"""``priory learn``: more rows learned into a model file."""

from __future__ import annotations

from typing import Any

from priory.cli.options import add_update_options, pop_update_options
from priory.cli.sections import sectioned_command
from priory.cli.terminal import print_update, watch_workflow


@sectioned_command(
    "learn", short_help="Learn more rows into a model.", epilog="Example: priory learn mail.priory today.csv"
)
@add_update_options
def learn_command(model: str, paths: tuple[str, ...], json_: bool, **given: Any) -> None:
    """Learn the rows of FILEs in addition to what MODEL has learned: all of them, or none if there is an error.

    If MODEL does not exist, it is created as priory train --plain --target COLUMN would. Several processes may learn
    into one MODEL at the same time: each waits for its turn, and nothing is lost.
    """
    options = pop_update_options(given)
    from priory.workflows import learn

    with watch_workflow(paths) as callbacks:
        result = learn(model, paths, callbacks=callbacks, **options)
    print_update("learned", model, result, json_)
