"""Places behind URLs: memory, a server of S3's protocol, a stand-in of Hadoop's command."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
import urllib.request
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.distributed.jobs import free_endpoints

STANDIN = Path(__file__).with_name("standin_hadoop.py")


@pytest.fixture(scope="session")
def s3() -> Iterator[dict[str, str]]:
    """A server of S3's protocol on the loopback; gives the settings that lead to it."""
    pytest.importorskip("s3fs", reason="s3fs is in the extra 'test-all'")
    pytest.importorskip("moto.server", reason="moto is in the extra 'test-all'")
    (endpoint,) = free_endpoints(1)
    port = endpoint.rpartition(":")[2]
    server = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    address = f"http://127.0.0.1:{port}"
    try:
        end = time.monotonic() + 120
        while True:
            try:
                urllib.request.urlopen(address, timeout=60).close()
                break
            except OSError:
                assert server.poll() is None
                assert time.monotonic() < end
                time.sleep(0.1)
        yield {
            "FSSPEC_S3_ENDPOINT_URL": address,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": "us-east-1",
        }
    finally:
        server.terminate()
        server.wait(30)


@pytest.fixture
def hadoop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The stand-in as $HADOOP_HOME/bin/hadoop; gives the directory in which its files are."""
    command = tmp_path / "hadoop" / "bin" / "hadoop"
    command.parent.mkdir(parents=True)
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -S {STANDIN} "$@"\n')
    command.chmod(command.stat().st_mode | stat.S_IXUSR)
    root = tmp_path / "cluster"
    root.mkdir()
    monkeypatch.setenv("HADOOP_HOME", str(tmp_path / "hadoop"))
    monkeypatch.setenv("STANDIN_ROOT", str(root))
    return root


@pytest.fixture(
    params=[
        "memory",
        pytest.param("hdfs", marks=pytest.mark.slow),  # starts a process for each call
        pytest.param("s3", marks=[pytest.mark.slow, pytest.mark.filterwarnings("ignore")]),
    ]
)
def url(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A directory that is not there yet, in each kind of place."""
    name = uuid.uuid4().hex
    if request.param == "hdfs":
        request.getfixturevalue("hadoop")
        return f"hdfs://cluster:9000/user/me/{name}"
    if request.param == "memory":
        return f"memory://{name}/model"
    return str(request.getfixturevalue("s3_url"))


@pytest.fixture
def s3_url(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A directory that is not there yet, in a bucket of its own."""
    name = uuid.uuid4().hex
    for key, value in request.getfixturevalue("s3").items():
        monkeypatch.setenv(key, value)
    import fsspec

    options = {"endpoint_url": os.environ["FSSPEC_S3_ENDPOINT_URL"]}
    fsspec.config.conf.setdefault("s3", {}).update(options)
    fsspec.filesystem("s3").mkdir(f"bucket-{name}")
    return f"s3://bucket-{name}/some/model"
