"""``priory serve``: models behind HTTP that learn, forget and explain, and lose nothing that they acknowledged."""
