"""Makes the nouns and types of both clients from the API description."""
