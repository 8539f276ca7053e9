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
    path = options.get("socket") or os.environ.get("PRIORY_SOCKET")
    try:
        thresholds = mail_filter.FilterThresholds.read(
            options.get("certainty", 0), options.get("max-unsure", 0.05), options.get("max-false-positives", "")
        )
        token = options.get("token") or os.environ.get("PRIORY_TOKEN")
        connection = mail_filter.ServiceConnection(path, token) if path else None
    except (OSError, ValueError):
        return
    message = sys.stdin.buffer.read()
    code = mail_filter.EXIT_TRY_AGAIN
    try:
        if connection is None:
            skip_slow_imports()
            verdict = mail_filter.judge_by_file(model, None, message, thresholds)
        else:
            verdict = mail_filter.judge_by_service(connection, model, message, thresholds)
        message = mail_filter.add_header(message, options.get("header", mail_filter.DEFAULT_HEADER), verdict.format())
        code = verdict.find_exit_code(options.get("exit-code"))
    except Exception as error:
        print(f"priory: the message is passed on as it came: {error}", file=sys.stderr)
    sys.stdout.buffer.write(message)
    sys.stdout.flush()
    os._exit(code)  # a mail server waits for every message: nothing is left to clean up


if __name__ == "__main__":
    run_program()
