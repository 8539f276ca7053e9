"""Learning on clusters: a record for each partition, a tree of ``+``, and corrections from the sum.

`priory.engines.dask` and `priory.engines.spark` have the same functions: ``fit``, ``predict``, ``predict_proba``,
``forget`` and ``evaluate``.
"""
