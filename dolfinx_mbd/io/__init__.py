"""Export, import and the command line."""

import lazy_loader

__getattr__, _, _ = lazy_loader.attach(__name__, ["cli", "export", "imports"])
