"""The only place with SQL: rows in, rows out, and the server that keeps them."""
