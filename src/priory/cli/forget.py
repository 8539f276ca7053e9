"""``priory forget``: rows unlearned from a model file."""

from __future__ import annotations

from typing import Any

from priory.cli.options import add_update_options, pop_update_options
from priory.cli.sections import sectioned_command
from priory.cli.terminal import print_update, watch_workflow


@sectioned_command(
    "forget", short_help="Unlearn rows, exactly.", epilog="Example: priory forget mail.priory withdrawn.csv"
)
@add_update_options
def forget_command(model: str, paths: tuple[str, ...], json_: bool, **given: Any) -> None:
    """Unlearn the rows of FILEs: MODEL becomes exactly what it would be if it had never learned them.

    All rows are forgotten, or none if one of them was never learned.
    """
    options = pop_update_options(given)
    from priory.workflows import forget

    with watch_workflow(paths) as callbacks:
        result = forget(model, paths, callbacks=callbacks, **options)
    print_update("forgotten", model, result, json_)
