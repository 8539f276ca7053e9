"""``priory``, and ``python -m priory``. Filtering mail starts without the other commands."""

import os
import sys
from typing import NoReturn

from priory.core.lazy_imports import skip_slow_imports


def run_program() -> NoReturn:
    """Run a command, and end with its exit code."""
    if sys.argv[1:2] == ["filter"]:
        filter_mail_quickly(sys.argv[2:])
    from priory.cli.entry_point import entry

    entry()


def filter_mail_quickly(arguments: list[str]) -> None:
    """Filter a message and end, without the other commands; returns, and nothing has happened, if they are needed."""
    from priory.service import mail_filter

    given = mail_filter.read_quick_options(arguments)
    if given is None:
        return
    model, options = given
    try:
        thresholds = mail_filter.FilterThresholds.read(
            options.get("certainty", 0), options.get("max-unsure", 0.05), options.get("max-false-positives", "")
        )
    except ValueError:
        return
    path = options.get("socket") or os.environ.get("PRIORY_SOCKET")
    token = options.get("token") or os.environ.get("PRIORY_TOKEN")
    if not path:
        skip_slow_imports()
    judge = mail_filter.choose_judge(model, path, token, None, thresholds)
    code = mail_filter.pass_mail_on(judge, options.get("header", mail_filter.DEFAULT_HEADER), options.get("exit-code"))
    os._exit(code)  # a mail server waits for every message: nothing is left to clean up


if __name__ == "__main__":
    run_program()
