"""Where things are: the project, and the public data sets (tests that need one skip where it is absent).

The data sets are looked for in the folder named by PRIORY_DATA, by default ``shared/data`` next to the project.
"""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("PRIORY_DATA", ROOT.parent / "shared" / "data"))
