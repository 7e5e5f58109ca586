"""``python -m paddlelike.distributed.launch_ps``: the launcher under Fluid's name, with Fluid's log files."""

import sys

from paddlelike.distributed.launch.command import main

if __name__ == "__main__":
    sys.exit(main(program="paddlelike.distributed.launch_ps", log_dir="logs"))
