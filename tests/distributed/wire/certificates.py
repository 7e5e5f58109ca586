"""Certificates of a job, made for a test."""

from __future__ import annotations

import datetime
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from paddlelike.distributed.wire import Tls

__all__ = ["Authority"]


class Authority:
    """A certificate authority that exists in this process only."""

    def __init__(self, name: str = "a job") -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        constraints = x509.BasicConstraints(ca=True, path_length=0)
        certificate = self._build(self._name, self._key.public_key(), 30).add_extension(constraints, True)
        self.certificate = _pem(certificate.sign(self._key, hashes.SHA256()))

    def issue(self, *hosts: str, days: int = 30) -> Tls:
        """A certificate for hosts (names or addresses) that holds so many days from now."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "a process")])
        names = x509.SubjectAlternativeName([_general(host) for host in hosts or ("127.0.0.1",)])
        certificate = self._build(subject, key.public_key(), days).add_extension(names, False)
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return Tls(self.certificate, _pem(certificate.sign(self._key, hashes.SHA256())), private)

    def _build(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey, days: int
    ) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        return x509.CertificateBuilder(
            issuer_name=self._name,
            subject_name=subject,
            public_key=key,
            serial_number=x509.random_serial_number(),
            not_valid_before=now - datetime.timedelta(days=60),
            not_valid_after=now + datetime.timedelta(days=days),
        )


def write(tls: Tls, directory: Path) -> dict[str, str]:
    """The three files, and the variables that name them."""
    variables = {}
    for name, text in (("CA", tls.authority), ("CERT", tls.certificate), ("KEY", tls.key)):
        path = directory / f"{name}.pem"
        path.write_bytes(text)
        variables[f"PADDLELIKE_TLS_{name}"] = str(path)
    return variables


def _general(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
