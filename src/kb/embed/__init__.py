"""The use case `kb embed`: every text of a snapshot gets its vector, once for ever."""
