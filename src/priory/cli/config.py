"""Options from a file: ``priory.toml``, or the table ``tool.priory`` of ``pyproject.toml``, in the current folder.

Keys are options without their dashes. Those at the top are for every command that has the option, and those in a table
named after a command are for that command. What is typed on the command line comes first.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from priory.errors import suggest_name

CONFIG_FILE, PROJECT_FILE = "priory.toml", "pyproject.toml"


def read_config() -> tuple[str, dict[str, Any]]:
    """The name of the file and its keys; no keys if there is no file."""
    for name, tables in ((CONFIG_FILE, ()), (PROJECT_FILE, ("tool", "priory"))):
        if Path(name).is_file():
            import tomllib  # most folders have no such file

            try:
                found: Any = tomllib.loads(Path(name).read_text("utf-8"))
            except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
                raise click.UsageError(f"{name}: is not TOML ({error}); mend it, or remove it") from None
            for table in tables:
                found = found.get(table, {})
            if found:
                return name, found
    return "", {}


def find_defaults(command: click.Command, shared: set[str], commands: set[str]) -> tuple[str, dict[str, Any]]:
    """The name of the file, and the values of parameters that it gives to a command.

    ``shared`` are the options that may stand at the top of the file, ``commands`` the tables that it may have.
    """
    file, config = read_config()
    options = {flag.lstrip("-"): one for one in command.params if isinstance(one, click.Option) for flag in one.opts}
    own = config.get(str(command.name), {})
    top = {key: value for key, value in config.items() if key not in commands}
    for keys, known, where in ((top, shared, ""), (own, options.keys(), f"[{command.name}] ")):
        for key in keys:
            if key not in known:
                raise click.UsageError(f"{file}: {where}{key!r} is no option{suggest_name(key, known)}; remove it")
    given = {key: value for key, value in (top | own).items() if key in options}
    return file, {str(options[key].name): _convert_value(options[key], value) for key, value in given.items()}


def _convert_value(option: click.Option, value: Any) -> Any:
    """A value of TOML as it would be typed: names in a list, and pairs in a table."""
    if isinstance(value, dict):
        value = [f"{name}={one}" for name, one in value.items()]
    elif option.multiple and not isinstance(value, list):
        value = [value]
    return ",".join(map(str, value)) if isinstance(value, list) and not option.multiple else value
