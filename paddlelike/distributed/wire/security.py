"""Who may connect: clear text stays on this machine, everything else is TLS with certificates on both sides.

A server with a job token requires it in every call and compares it in constant time. A token is sent only
over TLS or on this machine. Where the environment sets neither a token nor TLS, calls on the loopback use the
token in the user's token file (:mod:`.token_file`).
"""

from __future__ import annotations

import hmac
import ipaddress
import os
import socket
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from paddlelike.distributed.wire.options import load_grpc
from paddlelike.distributed.wire.token_file import read_or_create_token
from paddlelike.errors import EndpointError
from paddlelike.lazy import dataclass

if TYPE_CHECKING:
    import grpc

TOKEN_KEY: Final = "paddlelike-token-bin"  # noqa: S105  (a key; metadata with this ending holds bytes)
_FILES: Final = ("PADDLELIKE_TLS_CA", "PADDLELIKE_TLS_CERT", "PADDLELIKE_TLS_KEY")


@dataclass(frozen=True)
class Tls:
    """PEM texts: the job's certificate authority, this process's certificate and its private key."""

    authority: bytes
    certificate: bytes
    key: bytes = field(repr=False)

    @staticmethod
    def from_files(authority: str, certificate: str, key: str) -> Tls:
        """Read the three PEM files. Raises EndpointError for one that cannot be read."""
        texts = []
        for path in (authority, certificate, key):
            try:
                texts.append(Path(path).read_bytes())
            except OSError as error:
                raise EndpointError(
                    f"the TLS file {path} cannot be read: {error.strerror}", hint=f"see {', '.join(_FILES)}"
                ) from error
        return Tls(*texts)


@dataclass(frozen=True)
class Security:
    """The security settings of a process for its connections.

    Parameters
    ----------
    tls
        Certificates; None for clear text.
    token
        The job's token; a server without one requires none.
    insecure
        Allow clear text to and from other machines.
    use_token_file
        On the loopback, take the token from the user's token file.
    """

    tls: Tls | None = None
    token: str | None = field(default=None, repr=False)
    insecure: bool = False
    use_token_file: bool = False

    @staticmethod
    def from_environment(environment: Mapping[str, str] = os.environ) -> Security:
        """Return the settings of the environment.

        The variables are PADDLELIKE_TLS_CA, _CERT and _KEY, PADDLELIKE_JOB_TOKEN, and PADDLELIKE_INSECURE=1.
        Without any of them, the token file is used.

        Raises
        ------
        EndpointError
            Some of the three TLS files are not set, or one cannot be read.
        """
        files = [environment.get(name, "") for name in _FILES]
        if any(files) and not all(files):
            missing = [name for name, value in zip(_FILES, files, strict=True) if not value]
            raise EndpointError(f"TLS needs {', '.join(_FILES)}; not set: {', '.join(missing)}")
        token = environment.get("PADDLELIKE_JOB_TOKEN") or None
        insecure = environment.get("PADDLELIKE_INSECURE") == "1"
        return Security(
            tls=Tls.from_files(*files) if all(files) else None,
            token=token,
            insecure=insecure,
            use_token_file=not (any(files) or token or insecure),
        )

    def for_endpoint(self, endpoint: str) -> Security:
        """Return the settings for one endpoint, with the token of the token file where it is used.

        Raises
        ------
        EndpointError
            The endpoint may not be served or called with these settings, or the token file cannot be used.
        """
        self.check(endpoint)
        if not self.use_token_file or not is_loopback(parse_endpoint(endpoint)[0]):
            return self
        return replace(self, token=read_or_create_token(), use_token_file=False)

    def check(self, endpoint: str) -> None:
        """Raise EndpointError unless this endpoint may be served, or called, with these settings."""
        host, _ = parse_endpoint(endpoint)
        if self.tls is not None or is_loopback(host):
            return
        if not self.insecure:
            raise EndpointError(
                f"{endpoint} is not on this machine, and clear text may not leave it",
                hint=f"set {', '.join(_FILES)} for TLS; or PADDLELIKE_INSECURE=1 on a network that you trust",
            )
        if self.token is not None:
            raise EndpointError(
                f"the job's token would travel to {endpoint} in clear text",
                hint=f"set {', '.join(_FILES)} for TLS, or unset PADDLELIKE_JOB_TOKEN",
            )

    def accepts(self, metadata: Iterable[tuple[str, str | bytes]]) -> bool:
        """Return whether the metadata of a call holds the job's token, or the job needs no token."""
        if self.token is None:
            return True
        given = [value for key, value in metadata or () if key == TOKEN_KEY]
        sent = given[0] if len(given) == 1 and isinstance(given[0], bytes) else b""
        return hmac.compare_digest(sent, self.token.encode())

    def metadata(self) -> tuple[tuple[str, bytes], ...]:
        """Return the metadata of every call of this process: the token, if there is one."""
        return () if self.token is None else ((TOKEN_KEY, self.token.encode()),)

    def bind(self, server: grpc.Server, address: str) -> int:
        """Make a gRPC server listen at ``address``; return the port. Raises RuntimeError where it cannot."""
        if self.tls is None:
            return int(server.add_insecure_port(address))
        pair = ((self.tls.key, self.tls.certificate),)
        credentials = load_grpc().ssl_server_credentials(pair, self.tls.authority, require_client_auth=True)
        return int(server.add_secure_port(address, credentials))

    def channel(self, address: str, options: list[tuple[str, int]]) -> grpc.Channel:
        """Return a gRPC channel to ``address``."""
        grpc = load_grpc()
        if self.tls is None:
            return grpc.insecure_channel(address, options)
        credentials = grpc.ssl_channel_credentials(self.tls.authority, self.tls.key, self.tls.certificate)
        return grpc.secure_channel(address, credentials, options)


def parse_endpoint(endpoint: str) -> tuple[str, int]:
    """Return host and port of ``host:port`` or ``[v6 address]:port``. Raises EndpointError for another text.

    >>> parse_endpoint("127.0.0.1:6174"), parse_endpoint("[::1]:6174")
    (('127.0.0.1', 6174), ('::1', 6174))
    """
    host, colon, port = endpoint.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        host = ""
    if (
        not colon
        or not host
        or "/" in host
        or not (port.isascii() and port.isdigit() and int(port) < 1 << 16)
    ):
        raise EndpointError(f"{endpoint!r} is not an endpoint", hint="write host:port, as in 127.0.0.1:6174")
    return host, int(port)


def is_loopback(host: str) -> bool:
    """Return whether every address of a host name, or an address, is one of this machine's loopback.

    >>> is_loopback("127.0.0.1"), is_loopback("0.0.0.0")
    (True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        pass
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        return False
    return bool(found) and all(ipaddress.ip_address(entry[4][0]).is_loopback for entry in found)
