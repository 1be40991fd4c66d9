"""Export, import and the command line."""

