"""The MCP server: parses arguments, calls one use case, renders its answer."""
