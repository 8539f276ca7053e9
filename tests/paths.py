"""Where things are: the project, and the data sets beside it (absent elsewhere; tests that need them skip)."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared"
DATA = Path(os.environ.get("PRIORY_DATA", SHARED / "data"))
