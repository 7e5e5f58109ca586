"""``python -m paddlelike.distributed.launch``, also called ``paddle.distributed.launch`` in scripts."""

import sys

from paddlelike.distributed.launch.command import main

if __name__ == "__main__":
    name = "" if __spec__ is None else __spec__.name
    sys.exit(main(run_mode="collective" if name.startswith("paddle.") else "ps"))
