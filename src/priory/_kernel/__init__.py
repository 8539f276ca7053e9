"""The loops that touch every cell, compiled; `reference` is the same in readable NumPy.

Only `priory.counting` imports this package. The tests run over both twins.
"""
