"""Four toy fields: they go the one way through the core without any change to it."""
