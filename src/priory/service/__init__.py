"""``priory serve``: an HTTP service for models that learn, forget and explain; acknowledged changes are durable."""
