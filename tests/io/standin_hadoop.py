"""A stand-in for the command ``hadoop``: ``hadoop fs`` over a local directory, named by STANDIN_ROOT.

It does what Hadoop's does where callers could tell: -mv and -put do not overwrite without -f, a listing has
Hadoop's columns, errors have its words and exit codes. Every command line is appended to STANDIN_ROOT.log.
"""

# ruff: noqa: T201
from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path

ROOT = Path(os.environ.get("STANDIN_ROOT", "."))


def local(url: str) -> Path:
    rest = url.removeprefix("hdfs:")
    if rest.startswith("//"):
        rest = "/" + rest[2:].partition("/")[2]
    return ROOT / rest.strip("/")


def fail(verb: str, url: str, why: str = "No such file or directory") -> None:
    print(f"{verb}: `{url}': {why}", file=sys.stderr)
    sys.exit(1)


def must(verb: str, url: str) -> Path:
    if not local(url).exists():
        fail(verb, url)
    return local(url)


def place(source: Path, target: Path, verb: str, url: str, over: bool, move: bool) -> None:
    if target.is_dir():
        target = target / source.name
    if target.exists() and not over:
        fail(verb, url, "File exists")
    if not target.parent.is_dir():
        fail(verb, url)
    if source.is_dir():
        if move:
            source.rename(target)
        else:
            shutil.copytree(source, target, dirs_exist_ok=True)
    elif move:
        source.rename(target)
    else:
        shutil.copyfile(source, target)


def main() -> None:
    words = sys.argv[1:]
    with ROOT.with_suffix(".log").open("a") as log:
        print(*words, file=log)
    assert words[0] == "fs", words
    verb, words = words[1], words[2:]
    options = {word for word in words if word.startswith("-") and word != "-"}
    paths = [word for word in words if word not in options]
    if verb == "-ls":
        base = must("ls", paths[0])
        for path in sorted(base.rglob("*") if "-R" in options else base.iterdir()):
            facts = path.stat()
            when = time.strftime("%Y-%m-%d %H:%M", time.gmtime(facts.st_mtime))
            kind = "drwxr-xr-x   -" if path.is_dir() else "-rw-r--r--   3"
            size = 0 if path.is_dir() else facts.st_size
            print(f"{kind} user group {size:>10} {when} {paths[0].rstrip('/')}/{path.relative_to(base)}")
    elif verb == "-test":
        there = local(paths[0]).is_dir() if "-d" in options else local(paths[0]).exists()
        sys.exit(0 if there else 1)
    elif verb == "-cat":
        sys.stdout.buffer.write(must("cat", paths[0]).read_bytes())
    elif verb == "-stat":
        for url in paths[1:]:
            print(int(must("stat", url).stat().st_mtime * 1000))
    elif verb == "-mkdir":
        for url in paths:
            local(url).mkdir(parents=True, exist_ok=True)
    elif verb == "-put" and paths[0] == "-":
        if not local(paths[1]).parent.is_dir():
            fail("put", paths[1])
        local(paths[1]).write_bytes(sys.stdin.buffer.read())
    elif verb == "-put":
        for path in paths[:-1]:
            place(Path(path), local(paths[-1]), "put", paths[-1], "-f" in options, False)
    elif verb == "-get":
        for url in paths[:-1]:
            place(must("get", url), Path(paths[-1]), "get", url, False, False)
    elif verb in ("-mv", "-cp"):
        for url in paths[:-1]:
            place(must(verb[1:], url), local(paths[-1]), verb[1:], url, "-f" in options, verb == "-mv")
    elif verb == "-rm":
        for url in paths:
            if not local(url).exists() and "-f" in options:
                continue
            path = must("rm", url)
            if path.is_dir() and "-r" not in options:
                fail("rm", url, "Is a directory")
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    else:
        print(f"{verb}: Unknown command", file=sys.stderr)
        sys.exit(255)


if __name__ == "__main__":
    main()
