"""The records that the stations hand to each other; no behaviour, no I/O."""
