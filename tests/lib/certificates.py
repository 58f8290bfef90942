"""Certificates for tests and measurements."""
import subprocess


def localhost_certificate(directory):
    """Returns the paths of a new certificate for this host, which trusts itself, and of its key."""
    certificate, key = directory / "certificate.pem", directory / "key.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=localhost", "-days", "2",
                    "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", key,
                    "-out", certificate], check=True, capture_output=True)
    key.chmod(0o600)
    return certificate, key
