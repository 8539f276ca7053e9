"""The loops that touch every cell, compiled; `table_reference` and `text_reference` say the same in readable Python.

`priory.core.column_kernels` owns `tables`, `priory.bag_of_words.tokenizer` owns `text`. The tests run over both twins.
"""
