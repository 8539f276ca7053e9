"""``priory learn``: learn more rows into a model file."""

from __future__ import annotations

from typing import Any

from priory import workflows
from priory.cli.options import open_task, update_options
from priory.cli.sections import sectioned_command
from priory.cli.terminal import print_update


@sectioned_command(
    "learn", short_help="Learn more rows into a model.", epilog="Example: priory learn mail.priory today.csv"
)
@update_options
def learn_command(
    model: str, paths: tuple[str, ...], refresh_from: tuple[str, ...], wait: float | None, json_: bool, **given: Any
) -> None:
    """Learn the rows of FILEs in addition to what MODEL has learned: all of them, or none if there is an error.

    If MODEL does not exist, it is created as priory train --plain --target COLUMN would. Several processes may learn
    into one MODEL at the same time: each waits for its turn, and nothing is lost.
    """
    with open_task(paths, given) as task:
        result = workflows.learn(model, task, refresh_from=refresh_from, wait=wait)
    print_update("learned", model, result, json_)
