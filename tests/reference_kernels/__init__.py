"""The compiled kernels in plain Python and NumPy: what each function means. The same tests run on both."""
