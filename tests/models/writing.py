"""What scripts that run under a real Paddle write of its models (Python 3.7 too)."""

import io
import tarfile
from pathlib import Path


def write_archive(out, folder):
    """Write the files below a folder, in the order of their names, without times and owners."""
    with tarfile.open(out, "w:xz", preset=9) as tar:
        for path in sorted(one for one in Path(folder).rglob("*") if one.is_file()):
            data = path.read_bytes()
            info = tarfile.TarInfo(str(path.relative_to(folder)))
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
