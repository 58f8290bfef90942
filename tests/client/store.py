"""An object store for tests: S3's protocol as far as the client speaks it. It computes every
signature by itself, as the documentation of Signature Version 4 describes it, and refuses wrong
ones."""
import base64
import dataclasses
import datetime
import email.utils
import hashlib
import hmac
import re
import time
import urllib.parse
import zlib
from xml.sax.saxutils import escape

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
    """`buckets` is {bucket: {key: Object}}. `trouble(handler, bucket, key)` may answer instead. `expired`
    are tokens, `clock` the seconds by which the store's is ahead, `page` the length of a page of keys,
    `payer` whether requesters must pay."""

    access_key, secret_key, token, region = "AKIDEXAMPLE", "wJalr/XUtn+FEMI", None, "us-east-1"
    expired, clock, page, payer = (), 0, 1000, False

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
        if abs(now - time.time() - self.clock) > 900 or not date.startswith(day):
            raise Refusal(403, "RequestTimeTooSkewed")
        path, _, query = handler.path.partition("?")
        parts = [part.split("=") for part in query.split("&")] if query else []
        if query != "&".join(f"{name}={urllib.parse.quote(urllib.parse.unquote(value), safe='')}"
                             for name, value in sorted(parts)):
            raise Refusal(403, "SignatureDoesNotMatch", "The query is not canonical")
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
        token = handler.headers.get("x-amz-security-token") or None
        if token in self.expired:
            raise Refusal(400, "ExpiredToken")
        if token != self.token:
            raise Refusal(400, "InvalidToken")
        if self.payer and handler.headers.get("x-amz-request-payer") != "requester":
            raise Refusal(403, "AccessDenied", "Requester pays")

    def name(self, handler):
        """Bucket and key: of the path, or of host and path."""
        host, path = handler.headers["Host"], urllib.parse.unquote(handler.path.partition("?")[0])
        virtual = re.fullmatch(r"(.+)\.localhost:\d+", host)
        bucket, key = (virtual[1], path[1:]) if virtual else path[1:].split("/", 1)
        if bucket not in self.buckets:
            raise Refusal(404, "NoSuchBucket")
        return bucket, key

    def reply(self, handler):
        handler.date_time_string = lambda *_: email.utils.formatdate(time.time() + self.clock, usegmt=True)
        try:
            self.verify(handler)
            bucket, key = self.name(handler)
            query = dict(urllib.parse.parse_qsl(handler.path.partition("?")[2], keep_blank_values=True))
            with self.lock:
                self.log.append(f"LIST {bucket}/{query['prefix']}" if query else f"{handler.command} {bucket}/{key}")
            if query and not key:
                return self.trouble(handler, bucket, key) or self.listed(self.buckets[bucket], query)
            return self.trouble(handler, bucket, key) or self.serve(handler, self.buckets[bucket], key)
        except Refusal as refusal:
            return refusal.answer

    def listed(self, bucket, query):
        """A page of keys that begin with the prefix."""
        assert query["list-type"] == "2"
        keys = sorted(key for key in list(bucket) if key.startswith(query["prefix"]))
        start = int(query.get("continuation-token", "token 0/+").split()[1].split("/")[0])
        page, more = keys[start:start + self.page], start + self.page < len(keys)
        text = "".join(
            f"<Contents><Key>{escape(key, {chr(13): '&#13;', chr(34): '&quot;'})}</Key><ETag>&quot;x&quot;</ETag>"
            f"<Size>{len(bucket[key].body)}</Size><Owner><ID>Key</ID></Owner></Contents>" for key in page)
        token = f"<NextContinuationToken>token {start + self.page}/+</NextContinuationToken>" if more else ""
        return 200, {"Content-Type": "application/xml"}, (
            f'<?xml version="1.0" encoding="UTF-8"?>\n<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
            f"<Name>b</Name><Prefix>{escape(query['prefix'])}</Prefix><KeyCount>{len(page)}</KeyCount>{text}"
            f"<IsTruncated>{str(more).lower()}</IsTruncated>{token}</ListBucketResult>").encode()

    def serve(self, handler, bucket, key):
        if handler.command == "PUT":
            given = handler.headers["x-amz-checksum-crc32"]
            if base64.b64decode(given) != zlib.crc32(handler.body).to_bytes(4, "big"):
                raise Refusal(400, "BadDigest")
            unless, only = handler.headers.get("If-None-Match"), handler.headers.get("If-Match")
            if (unless == "*" and key in bucket) or (only and (key not in bucket or bucket[key].etag != only)):
                raise Refusal(412, "PreconditionFailed")
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
