"""Property tests take the time they need; they explore anew on every run, and repeat themselves where CI is set."""

import os

from hypothesis import settings

settings.register_profile("priory", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("priory")
