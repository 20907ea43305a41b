"""A page that shows runs while they run and when they are done: a small read-only server, and the page itself."""
