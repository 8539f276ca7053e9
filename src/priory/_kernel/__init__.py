"""The loops that touch every cell, compiled; `reference` and `text_reference` say the same in readable Python.

`priory.counting` owns `compiled` (tables), `priory.tokens` owns `text`. The tests run over both twins of each.
"""
