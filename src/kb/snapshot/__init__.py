"""From a commit to a sealed snapshot: what to index, parsing, linking, sealing."""
