"""Python sources (`python`) and stubs (`python-stub`): normalisation, spans and module facts."""
