"""Draws the figures of docs/regression.md by running the examples of that page, which save them."""

import os
import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[1] / "regression.md"

if __name__ == "__main__":
    os.chdir(PAGE.parents[1])  # the page saves to docs/figures
    code = "\n".join(re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL))
    exec(compile(code, str(PAGE), "exec"), {})
