"""Export, import and the command line."""

from dolfinx_mbd.lazy import names_in

__getattr__ = names_in(__name__, "cli", "export", "imports")
