"""``python -m paddlelike.distributed.launch_ps``: Fluid's name for the launcher, and its place for logs."""

import sys

from paddlelike.distributed.launch.command import main

if __name__ == "__main__":
    sys.exit(main(program="paddlelike.distributed.launch_ps", log_dir="logs"))
