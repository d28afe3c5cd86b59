"""Events: what happens when something happens, with handlers and emitters joined, and caches."""
