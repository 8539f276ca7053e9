"""Property tests take the time they need: a busy machine is not a failure."""

from hypothesis import settings

settings.register_profile("priory", deadline=None)
settings.load_profile("priory")
