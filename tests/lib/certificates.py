"""Certificates for tests and measurements."""
import ssl
import subprocess

from service import Client, free_port


def localhost_certificate(directory):
    """Returns the paths of a new certificate for this host, which trusts itself, and of its key."""
    certificate, key = directory / "certificate.pem", directory / "key.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=localhost", "-days", "2",
                    "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", key,
                    "-out", certificate], check=True, capture_output=True)
    key.chmod(0o600)
    return certificate, key


def tls_address(directory):
    """Returns a client of an address that has such a certificate, and its service's options."""
    certificate, key = localhost_certificate(directory)
    client = Client("localhost", free_port())
    client.tls = ssl.create_default_context(cafile=certificate)
    return client, ("--listen", f"tls:127.0.0.1:{client.port}",
                    "--tls-certificate", str(certificate), "--tls-key", str(key))
