"""The grammar of logical keys of modules and definitions (docs/extractors.md)."""

from __future__ import annotations

from kb.extract.layout import ModuleName


def module_id(name: ModuleName) -> str:
    """The dotted name with its prefix: `shop.orders`, `services/two:app.main`, `stub:shop.orders`."""
    return name.key_prefix + name.dotted


def module_key(name: ModuleName) -> str:
    """Key of a module's artifact: `module:shop.orders`."""
    return f"module:{module_id(name)}"


def symbol_key(name: ModuleName, symbol_path: str) -> str:
    """Key of a definition's artifact: `symbol:shop.orders.Order.total`."""
    return f"symbol:{module_id(name)}.{symbol_path}"
