"""The page: models in the browser, for people who teach them. Templates, one style sheet, one script and htmx."""
