"""Compiled loops over the cells of tables and the bytes of texts, in Cython.

In `priory.core`, `column_kernels` calls `tables`, `exact_sums` calls `exact`, `exact_products` calls `products`,
`sparse_rows` calls `sparse` and `special_functions` calls `gamma`; `priory.calibration.corrections` calls `rows`.
The modules of `priory.text` that read texts call `text`. tests/reference_kernels has the same functions
in plain Python, and the same tests run on both.
"""
