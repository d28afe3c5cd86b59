"""The SQL of search: what is indexed, what is asked, and the vectors (docs/search.md)."""
