"""`python -m kb` is `kb`."""

from __future__ import annotations

import sys

from kb.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
