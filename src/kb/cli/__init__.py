"""The command line: parse arguments, call one use case, render. Nothing heavy is imported to show help."""
