"""Two Ray nodes on one machine, in a network of their own: python drive_nodes.py SCRIPT [arguments].

Runs as the first process of a private network and process namespace (``unshare -n -p``): Ray would take the
address that leads outwards otherwise, and would be the same node twice.
"""

import fcntl
import os
import secrets
import socket
import struct
import subprocess
import sys
from pathlib import Path

SIOCSIFFLAGS, IFF_UP, IFF_RUNNING = 0x8914, 0x1, 0x40  # <linux/sockios.h>, <linux/if.h>

with socket.socket() as one:
    fcntl.ioctl(one, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP | IFF_RUNNING))
os.environ |= {
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": secrets.token_hex(32),
    "RAY_USAGE_STATS_ENABLED": "0",
}
ray = [str(Path(sys.executable).parent / "ray")]
node = ["--num-cpus=2", "--object-store-memory=80000000"]
head, address = ["--head", "--port=26379", "--include-dashboard=false"], "127.0.0.1:26379"
quiet = {"stdout": sys.stderr, "timeout": 120}
subprocess.run([*ray, "start", *head, "--node-ip-address=127.0.0.1", *node], check=True, **quiet)
subprocess.run(
    [*ray, "start", f"--address={address}", "--node-ip-address=127.0.0.2", *node], check=True, **quiet
)
launch = [sys.executable, "-m", "paddlelike.distributed.launch", "--engine=ray", f"--address={address}"]
done = subprocess.run([*launch, *sys.argv[1:]], timeout=240)
subprocess.run([*ray, "stop", "--force"], **quiet)
sys.exit(done.returncode)
