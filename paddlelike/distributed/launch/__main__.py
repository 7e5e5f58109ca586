"""``python -m paddlelike.distributed.launch``."""

import sys

from paddlelike.distributed.launch.command import main

if __name__ == "__main__":
    sys.exit(main())
