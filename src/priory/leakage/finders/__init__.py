"""The finders of the leakage audit, one module each."""
