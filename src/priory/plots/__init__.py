"""Figures: every function returns a matplotlib figure, which ``figure.savefig("bags.png")`` saves.

They need matplotlib: ``pip install 'priory[plots]'``.
"""

from priory.core.lazy_imports import attach_stub

__getattr__, __dir__ = attach_stub(__name__)
