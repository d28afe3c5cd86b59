"""Spans to artifacts: facts of one blob, then links against the rest of the snapshot."""
