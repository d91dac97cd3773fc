"""People look at cases and label them: pages that work without scripts, and the same as a JSON API."""
