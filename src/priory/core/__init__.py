"""Foundations: statistics that add and subtract, log-space arithmetic, and multithreaded counting in shards."""
