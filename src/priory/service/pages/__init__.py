"""Web pages of the service: templates, a style sheet, a script and htmx."""
