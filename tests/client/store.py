"""An object store for tests: S3's protocol as far as the client speaks it. It computes every
signature by itself, as the documentation of Signature Version 4 describes it, and refuses wrong
ones."""
import dataclasses
import datetime
import email.utils
import hashlib
import hmac
import re
import urllib.parse

from client import run
from scripted import Server

AUTHORIZATION = re.compile(r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/s3/aws4_request, "
                           r"SignedHeaders=([a-z0-9;-]+), Signature=([0-9a-f]{64})")


@dataclasses.dataclass
class Object:
    body: bytes
    headers: dict = dataclasses.field(default_factory=dict)
    changed: float = 1.6e9

    @property
    def etag(self):
        return f'"{hashlib.md5(self.body).hexdigest()}"'


class Refusal(Exception):
    def __init__(self, status, code, message="It is so.", headers=None, more=""):
        super().__init__(code)
        document = (f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code>'
                    f"<Message>{message}</Message>{more}</Error>")
        self.answer = status, {"Content-Type": "application/xml", **(headers or {})}, document.encode()


def signature(secret, day, region, text):
    key = f"AWS4{secret}".encode()
    for part in (day, region, "s3", "aws4_request", text):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return key.hex()


class Store(Server):
    """`buckets` is {bucket: {key: Object}}. `trouble(handler, bucket, key)` may answer instead."""

    access_key, secret_key, token, region = "AKIDEXAMPLE", "wJalr/XUtn+FEMI", None, "us-east-1"

    def __init__(self, certificate=None):
        super().__init__(self.reply, certificate)
        self.buckets, self.log, self.trouble = {"from": {}, "into": {}}, [], lambda *_: None

    def environment(self, **more):
        """Returns the settings for the AWS tools."""
        told = {"AWS_ACCESS_KEY_ID": self.access_key, "AWS_SECRET_ACCESS_KEY": self.secret_key,
                "AWS_SESSION_TOKEN": self.token, "AWS_ENDPOINT_URL_S3": self.url,
                "AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null"}
        return {name: value for name, value in {**told, **more}.items() if value}

    def run(self, *arguments, variables=None, **options):
        """Runs the client with these settings."""
        return run(*arguments, variables=self.environment(**(variables or {})), **options)

    def put(self, name, body, **headers):
        bucket, key = name.removeprefix("s3://").split("/", 1)
        self.buckets[bucket][key] = Object(body, headers)

    def body(self, name):
        bucket, key = name.removeprefix("s3://").split("/", 1)
        return self.buckets[bucket][key].body

    def asked(self):
        """The requests since this was last asked for, as "METHOD bucket/key"."""
        log, self.log = self.log, []
        return log

    def verify(self, handler):
        found = AUTHORIZATION.fullmatch(handler.headers.get("Authorization", ""))
        if not found:
            raise Refusal(403, "AccessDenied", "Access Denied")
        access, day, region, signed, given = found.groups()
        if access != self.access_key:
            raise Refusal(403, "InvalidAccessKeyId")
        if region != self.region:
            raise Refusal(400, "AuthorizationHeaderMalformed", more=f"<Region>{self.region}</Region>")
        names, date = signed.split(";"), handler.headers["x-amz-date"]
        must = {"host"} | {n.lower() for n in handler.headers if n.lower().startswith("x-amz-")}
        if names != sorted(names) or not must <= set(names):
            raise Refusal(403, "AccessDenied", "There were headers present which were not signed")
        now = datetime.datetime.strptime(date + "+0000", "%Y%m%dT%H%M%SZ%z").timestamp()
        if abs(now - datetime.datetime.now().timestamp()) > 900 or not date.startswith(day):
            raise Refusal(403, "RequestTimeTooSkewed")
        path, _, query = handler.path.partition("?")
        payload = handler.headers["x-amz-content-sha256"]
        if payload not in ("UNSIGNED-PAYLOAD", hashlib.sha256(handler.body).hexdigest()):
            raise Refusal(400, "XAmzContentSHA256Mismatch")
        request = "\n".join([
            handler.command, urllib.parse.quote(urllib.parse.unquote_to_bytes(path), safe="/"), query,
            *(f"{name}:{' '.join(handler.headers[name].split())}" for name in names), "", signed, payload])
        text = "\n".join(["AWS4-HMAC-SHA256", date, f"{day}/{region}/s3/aws4_request",
                          hashlib.sha256(request.encode()).hexdigest()])
        if not hmac.compare_digest(given, signature(self.secret_key, day, region, text)):
            raise Refusal(403, "SignatureDoesNotMatch")
        if (handler.headers.get("x-amz-security-token") or None) != self.token:
            raise Refusal(400, "InvalidToken")

    def name(self, handler):
        """Bucket and key: of the path, or of host and path."""
        host, path = handler.headers["Host"], urllib.parse.unquote(handler.path.partition("?")[0])
        virtual = re.fullmatch(r"(.+)\.localhost:\d+", host)
        bucket, key = (virtual[1], path[1:]) if virtual else path[1:].split("/", 1)
        if bucket not in self.buckets:
            raise Refusal(404, "NoSuchBucket")
        return bucket, key

    def reply(self, handler):
        try:
            self.verify(handler)
            bucket, key = self.name(handler)
            with self.lock:
                self.log.append(f"{handler.command} {bucket}/{key}")
            return self.trouble(handler, bucket, key) or self.serve(handler, self.buckets[bucket], key)
        except Refusal as refusal:
            return refusal.answer

    def serve(self, handler, bucket, key):
        if handler.command == "PUT":
            kept = {name: value for name, value in handler.headers.items()
                    if name.lower().startswith("x-amz-meta-") or name.lower() == "content-type"}
            bucket[key] = Object(handler.body, kept)
            return 200, {"ETag": bucket[key].etag}, b""
        if key not in bucket:
            raise Refusal(404, "NoSuchKey")
        found = bucket[key]
        headers = {**found.headers, "ETag": found.etag,
                   "Last-Modified": email.utils.formatdate(found.changed, usegmt=True)}
        if handler.headers.get("If-None-Match") == found.etag:
            return 304, {"ETag": found.etag, "Content-Length": None}, b""
        if handler.headers.get("Range") == "bytes=0-0":
            if not found.body:
                raise Refusal(416, "InvalidRange")
            return 206, {**headers, "Content-Range": f"bytes 0-0/{len(found.body)}"}, found.body[:1]
        return 200, headers, found.body
