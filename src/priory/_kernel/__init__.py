"""The loops that touch every cell, compiled; the modules named `..._reference` say the same in readable Python.

In `priory.core`, `column_kernels` calls `tables`, `exact_sums` calls `exact`, `exact_products` calls `products`,
`sparse_rows` calls `sparse` and `special_functions` calls `gamma`; `priory.calibration.row_corrections` calls `rows`.
The modules of `priory.bag_of_words` that read texts call `text`. The same tests run on the compiled loops and on their
references.
"""
