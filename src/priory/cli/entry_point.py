"""The commands of ``priory``; errors become one line and an exit code.

Exit codes: 0 success, 2 usage, 3 bad data, 4 bad model file, 5 files and disks, 6 a limit, 130 interrupted, 141 closed
pipe.
"""

from __future__ import annotations

import os
import sys
import warnings
from contextlib import suppress
from typing import NoReturn

import click

from priory import __version__
from priory.cli.options import LateGroup
from priory.cli.terminal import format_one_line, invoke_command, print_note
from priory.core.lazy_imports import skip_slow_imports
from priory.errors import MissingDependencyError, ModelFileError, PrioryError, PrioryWarning

EXIT_USAGE, EXIT_DATA, EXIT_MODEL, EXIT_FILES, EXIT_LIMIT, EXIT_PIPE, EXIT_INTERRUPTED = 2, 3, 4, 5, 6, 141, 130

QUICK_COMMANDS = {"predict", "explain", "learn", "forget", "inspect", "filter", "learn-mail"}  # without scikit-learn


COMMANDS = {  # by module, which is imported on use; a command is a function such as learn_mail_command
    "train": ("train",),
    "predict": ("predict", "explain", "ask", "select"),
    "evaluate": ("evaluate", "audit", "drift", "report"),
    "model_file": ("learn", "forget", "merge", "inspect", "sign"),
    "receipt_commands": ("receipt", "verify", "record", "release", "card", "export"),
    "serve": ("serve",),
    "filter_mail": ("filter", "learn-mail"),
    "doctor": ("demo", "doctor", "completion"),
}
HOMES = {command: module for module, commands in COMMANDS.items() for command in commands}


@click.group(
    cls=LateGroup,
    homes=HOMES,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="priory COMMAND --help shows the options of a command and an example.",
)
@click.version_option(__version__, message="priory %(version)s")
@click.option("--require-signature", metavar="KEY", help="Accept only models signed with this key (see priory sign).")
def app(require_signature: str | None) -> None:
    """Bayesian classification of texts and tables.

    \b
    posterior = prior + statistics(data)

    \b
    priory train mail.csv --target label
    priory predict mail.priory new.csv -o out.csv
    priory explain mail.priory "Free entry, text WIN now"
    """


def main(arguments: list[str] | None = None) -> int:
    """Run a command, and return its exit code."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", PrioryWarning)
            warnings.showwarning = lambda message, *_, **__: print_note(str(message))
            if "_PRIORY_COMPLETE" in os.environ:
                app.main(prog_name="priory")  # asked by the shell
            invoke_command(app, sys.argv[1:] if arguments is None else arguments)
        sys.stdout.flush()
        return 0
    except click.exceptions.Exit as done:
        return done.exit_code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # discard what is left in the buffer
        return EXIT_PIPE
    except KeyboardInterrupt:
        click.echo("priory: interrupted; nothing was changed", err=True)
        return EXIT_INTERRUPTED
    except Exception as error:
        if "PRIORY_DEBUG" in os.environ:
            raise
        if isinstance(error, click.exceptions.NoArgsIsHelpError):
            click.echo(error.format_message(), err=True)
            return EXIT_USAGE
        click.echo(f"priory: {format_one_line(format_error_message(error))}", err=True)
        return find_exit_code(error)


EXIT_CODES: tuple[tuple[type[Exception], int], ...] = (  # an error has the code of the first class that it belongs to
    (click.ClickException, EXIT_USAGE),
    (ModelFileError, EXIT_MODEL),
    (MemoryError, EXIT_LIMIT),
    (MissingDependencyError, EXIT_USAGE),
    (OSError, EXIT_FILES),
    (PrioryError, EXIT_DATA),
)


def find_exit_code(error: Exception) -> int:
    """The exit code for an error."""
    return next((code for kind, code in EXIT_CODES if isinstance(error, kind)), 1)


def format_error_message(error: Exception) -> str:
    if isinstance(error, click.ClickException):
        return error.format_message()
    if isinstance(error, OSError) and not isinstance(error, PrioryError):
        where = error.filename2 or error.filename
        reason = (error.strerror or str(error)).lower()
        return f"{os.fspath(where)}: {reason}" if isinstance(where, str | os.PathLike) else reason
    if isinstance(error, PrioryError):
        return str(error)
    if isinstance(error, MemoryError):
        return "not enough memory; give fewer rows at a time"
    return f"{type(error).__name__}: {error}; set PRIORY_DEBUG=1 to see where, and please report it"


def entry() -> NoReturn:
    """Entry point of the ``priory`` program."""
    command = next((argument for argument in sys.argv[1:] if not argument.startswith("-")), None)
    if command not in QUICK_COMMANDS:
        sys.exit(main())
    skip_slow_imports()
    code = main()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):  # the exit code reports the error already
            stream.flush()
    os._exit(code)  # all files are closed; the interpreter's own shutdown would take as long as the command
