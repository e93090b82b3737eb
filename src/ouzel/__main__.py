"""`python -m ouzel`."""

import sys

from ouzel.cli.main import main

sys.exit(main())
