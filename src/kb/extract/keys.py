"""Logical keys: how a definition is named in them."""

from __future__ import annotations

from kb.extract.api import FileView


def qualified(file: FileView, symbol_path: str) -> str:
    """`shop.orders.Order.total`, with the file's key prefix where another root defines the module too."""
    return file.key_prefix + ".".join(part for part in (file.module_name, symbol_path) if part)
