"""A stand-in for the command ``hadoop``: ``hadoop fs`` over a local directory, named by STANDIN_ROOT.

It does what Hadoop's does where callers could tell: -mv and -put do not overwrite without -f, a listing has
Hadoop's columns, errors have its words and exit codes. Every command line is appended to STANDIN_ROOT.log.
"""

# ruff: noqa: T201
from __future__ import annotations

# Every call starts an interpreter, of whose time shutil and pathlib would take two thirds.
import os
import sys

ROOT = os.environ.get("STANDIN_ROOT", ".")


def local(url: str) -> str:
    rest = url.removeprefix("hdfs:")
    if rest.startswith("//"):
        rest = "/" + rest[2:].partition("/")[2]
    return os.path.join(ROOT, rest.strip("/"))


def fail(verb: str, url: str, why: str = "No such file or directory") -> None:
    print(f"{verb}: `{url}': {why}", file=sys.stderr)
    sys.exit(1)


def must(verb: str, url: str) -> str:
    if not os.path.exists(local(url)):
        fail(verb, url)
    return local(url)


def place(source: str, target: str, verb: str, url: str, over: bool, move: bool) -> None:
    if os.path.isdir(target):
        target = os.path.join(target, os.path.basename(source))
    if os.path.exists(target) and not over:
        fail(verb, url, "File exists")
    if not os.path.isdir(os.path.dirname(target)):
        fail(verb, url)
    if move:
        os.rename(source, target)
    else:
        copy(source, target)


def copy(source: str, target: str) -> None:
    if not os.path.isdir(source):
        with open(source, "rb") as read, open(target, "wb") as written:
            written.write(read.read())
        return
    os.makedirs(target, exist_ok=True)
    for name in os.listdir(source):
        copy(os.path.join(source, name), os.path.join(target, name))


def remove(path: str) -> None:
    if not os.path.isdir(path):
        os.remove(path)
        return
    for name in os.listdir(path):
        remove(os.path.join(path, name))
    os.rmdir(path)


def walk(folder: str, deep: bool) -> list[str]:
    """Return the paths in a folder, or in all below it, in the order of their parts."""
    found = []
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        found.append(path)
        if deep and os.path.isdir(path):
            found += walk(path, deep)
    return found


def main() -> None:
    words = sys.argv[1:]
    with open(os.path.splitext(ROOT)[0] + ".log", "a") as log:
        print(*words, file=log)
    assert words[0] == "fs", words
    verb, words = words[1], words[2:]
    options = {word for word in words if word.startswith("-") and word != "-"}
    paths = [word for word in words if word not in options]
    if verb == "-ls":
        import time

        base = must("ls", paths[0])
        for path in walk(base, "-R" in options):
            facts = os.stat(path)
            when = time.strftime("%Y-%m-%d %H:%M", time.gmtime(facts.st_mtime))
            kind = "drwxr-xr-x   -" if os.path.isdir(path) else "-rw-r--r--   3"
            size = 0 if os.path.isdir(path) else facts.st_size
            print(f"{kind} user group {size:>10} {when} {paths[0].rstrip('/')}{path[len(base) :]}")
    elif verb == "-test":
        there = os.path.isdir(local(paths[0])) if "-d" in options else os.path.exists(local(paths[0]))
        sys.exit(0 if there else 1)
    elif verb == "-cat":
        with open(must("cat", paths[0]), "rb") as file:
            sys.stdout.buffer.write(file.read())
    elif verb == "-stat":
        for url in paths[1:]:
            print(int(os.stat(must("stat", url)).st_mtime * 1000))
    elif verb == "-mkdir":
        for url in paths:
            os.makedirs(local(url), exist_ok=True)
    elif verb == "-put" and paths[0] == "-":
        if not os.path.isdir(os.path.dirname(local(paths[1]))):
            fail("put", paths[1])
        with open(local(paths[1]), "wb") as file:
            file.write(sys.stdin.buffer.read())
    elif verb == "-put":
        for path in paths[:-1]:
            place(path, local(paths[-1]), "put", paths[-1], "-f" in options, False)
    elif verb == "-get":
        for url in paths[:-1]:
            place(must("get", url), paths[-1], "get", url, False, False)
    elif verb in ("-mv", "-cp"):
        for url in paths[:-1]:
            place(must(verb[1:], url), local(paths[-1]), verb[1:], url, "-f" in options, verb == "-mv")
    elif verb == "-rm":
        for url in paths:
            if not os.path.exists(local(url)) and "-f" in options:
                continue
            path = must("rm", url)
            if os.path.isdir(path) and "-r" not in options:
                fail("rm", url, "Is a directory")
            remove(path)
    else:
        print(f"{verb}: Unknown command", file=sys.stderr)
        sys.exit(255)


if __name__ == "__main__":
    main()
