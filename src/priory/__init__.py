"""Priory."""
