"""The loops that touch every cell, compiled; the modules named `..._reference` say the same in readable Python.

`priory.core.column_kernels` owns `tables`, `priory.core.exact_sums` owns `exact`, `priory.core.special_functions` owns
`gamma`, and `priory.bag_of_words.tokenizer`
owns `text`. The tests run over both twins.
"""
