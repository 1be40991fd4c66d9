"""Run the command line `dolfinx-mbd` as `python3 -m dolfinx_mbd`."""

import sys

from dolfinx_mbd.io.cli import main

if __name__ == "__main__":
    sys.exit(main())
