"""``python -m paddlelike.distributed.progress``."""

import sys

from paddlelike.distributed.progress.command import main

if __name__ == "__main__":
    sys.exit(main())
