"""Properties are tried without a time limit for each example: the first one pays for what is made once."""

from hypothesis import settings

settings.register_profile("priory", deadline=None)
settings.load_profile("priory")
