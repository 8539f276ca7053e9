"""``priory forget``: unlearn rows from a model file."""

from __future__ import annotations

from typing import Any

from priory import workflows
from priory.cli.options import open_task, update_options
from priory.cli.sections import sectioned_command
from priory.cli.terminal import print_update


@sectioned_command(
    "forget", short_help="Unlearn rows, exactly.", epilog="Example: priory forget mail.priory withdrawn.csv"
)
@update_options
def forget_command(
    model: str, paths: tuple[str, ...], refresh_from: tuple[str, ...], wait: float | None, json_: bool, **given: Any
) -> None:
    """Unlearn the rows of FILEs: MODEL becomes exactly what it would be if it had never learned them.

    All rows are forgotten, or none if one of them was never learned.
    """
    with open_task(paths, given) as task:
        result = workflows.forget(model, task, refresh_from=refresh_from, wait=wait)
    print_update("forgotten", model, result, json_)
