"""`python -m tfbook`: the accounts of a model from the command line. See `tfbook.command_line`."""

import sys

from tfbook.command_line import main

sys.exit(main())
