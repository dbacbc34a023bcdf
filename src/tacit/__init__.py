"""Tacit: learn from sensitive data without exposing anyone in it.

Rooms are imported when first used, so that ``import tacit`` stays quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from tacit.errors import TacitError

if TYPE_CHECKING:
    from tacit import ledger, noise
    from tacit.ledger import Ledger

__version__ = "0.1.0.dev0"

__all__ = ["Ledger", "TacitError", "__version__", "ledger", "noise"]

#: Public name -> module that holds it; a name equal to its module's last part is the module itself.
_LAZY = {"Ledger": "tacit.ledger", "ledger": "tacit.ledger", "noise": "tacit.noise"}


def __getattr__(name: str) -> object:
    try:
        home = _LAZY[name]
    except KeyError:
        raise AttributeError(f"module 'tacit' has no attribute {name!r}") from None
    module = import_module(home)
    value = module if home == f"tacit.{name}" else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
