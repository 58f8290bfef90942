"""The grammar of requests (RFC 9110, RFC 9112): bytes that are no request, or could be read as two
different ones, are refused and end the connection; every request is answered, however it is
written."""
import re
import socket
import ssl
import subprocess
import time

import numpy as np
import pytest

from certificates import localhost_certificate
from service import SMALL, free_port, raw_kind, read_answer

GET = "GET /livez HTTP/1.1\r\nHost: x\r\n"
BOX = f"POST /v1/filters/box?raw={raw_kind(SMALL)}&format=raw HTTP/1.1\r\nHost: x\r\n"
BODY = SMALL.tobytes().decode("latin-1")
CHUNKED = BOX + "Transfer-Encoding: chunked\r\n\r\n"
WHOLE = f"{len(BODY):x}\r\n{BODY}\r\n0\r\n\r\n"


def control(code):
    return f"control {code:#04x}"


# name: (bytes, status); each is all that is sent.
REFUSED = {
    # Request lines
    "no target": ("GET\r\n\r\n", 400),
    "no version": ("GET /livez\r\n\r\n", 400),
    "two spaces before the target": ("GET  /livez HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    "two spaces before the version": ("GET /livez  HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    "space after the version": ("GET /livez HTTP/1.1 \r\nHost: x\r\n\r\n", 400),
    "space before the method": (" GET /livez HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    "tab after the method": ("GET\t/livez HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    "tab after the target": ("GET /livez\tHTTP/1.1\r\nHost: x\r\n\r\n", 400),
    "space within the target": ("GET /live z HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    "method is no token": ("GE(T /livez HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    "method with a colon": ("GET: /livez HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    "empty method": (" /livez HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    "two empty lines": ("\r\n\r\n" + GET + "\r\n", 400),
    "LF first": ("\n" + GET + "\r\n", 400),
    "CR first": ("\r" + GET + "\r\n", 400),
    "version in lower case": ("GET /livez http/1.1\r\nHost: x\r\n\r\n", 400),
    "version without a number": ("GET /livez HTTP\r\nHost: x\r\n\r\n", 400),
    "version with one number": ("GET /livez HTTP/1\r\nHost: x\r\n\r\n", 400),
    "version with three numbers": ("GET /livez HTTP/1.1.1\r\nHost: x\r\n\r\n", 400),
    "version of two digits": ("GET /livez HTTP/1.10\r\nHost: x\r\n\r\n", 400),
    "version with a comma": ("GET /livez HTTP/1,1\r\nHost: x\r\n\r\n", 400),
    "another protocol": ("GET /livez ICY/1.1\r\nHost: x\r\n\r\n", 400),
    "HTTP/0.9": ("GET /livez HTTP/0.9\r\nHost: x\r\n\r\n", 505),
    "HTTP/1.2": ("GET /livez HTTP/1.2\r\nHost: x\r\n\r\n", 505),
    "HTTP/2": ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
    "HTTP/9.9": ("GET /livez HTTP/9.9\r\nHost: x\r\n\r\n", 505),
    "request line without end": ("GET /" + "a" * 100000, 414),
    "long target": ("GET /" + "a" * 300000 + " HTTP/1.1\r\nHost: x\r\n\r\n", 414),
    "TLS": ("\x16\x03\x01\x02\0\1\0\1\xfc\3\3" + "\0" * 100, 400),
    "zeros": ("\0" * 500, 400),
    "SSH": ("SSH-2.0-OpenSSH_9.2\r\n", 400),
    "SMTP": ("EHLO example.org\r\n", 400),
    # Targets
    "target without a slash": ("GET livez HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    "asterisk for GET": ("GET * HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    "asterisk and more": ("OPTIONS *x HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    "authority": ("CONNECT example.org:443 HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    "another scheme": ("GET ftp://x/livez HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    "scheme without a host": ("GET http:///livez HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    "scheme alone": ("GET http:// HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    "absolute with a user": ("GET http://me@x/livez HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    "absolute with a bad port": ("GET http://x:y/livez HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    "fragment": ("GET /livez#top HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    "percent at the end": ("GET /livez% HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    "percent and one digit": ("GET /livez%4 HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    "percent and no digits": ("GET /livez%zz HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    "percent in the query": ("GET /livez?a=50% HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    "NUL in the query": ("GET /livez?a=%00 HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    "NUL after the path": ("GET /livez%00.jpg HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    "bare UTF-8": ("GET /g\xc3\xa4ussian HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    # Line ends
    "LF alone ends the request line": ("GET /livez HTTP/1.1\nHost: x\r\n\r\n", 400),
    "LF alone ends a header": (GET + "A: b\nC: d\r\n\r\n", 400),
    "LF alone ends the head": (GET + "\n", 400),
    "CR alone ends the request line": ("GET /livez HTTP/1.1\rHost: x\r\n\r\n", 400),
    "CR alone ends a header": (GET + "A: b\rC: d\r\n\r\n", 400),
    "CR twice": (GET + "A: b\r\r\n\r\n", 400),
    "CR in a name": (GET + "A\rB: c\r\n\r\n", 400),
    "CR in a value": (GET + "A: b\rc\r\n\r\n", 400),
    # Headers
    "header without a colon": (GET + "Accept\r\n\r\n", 400),
    "header without a name": (GET + ": x\r\n\r\n", 400),
    "folded header": (GET + "A: b\r\n c\r\n\r\n", 400),
    "header folded by a tab": (GET + "A: b\r\n\tc\r\n\r\n", 400),
    "folded blank line": (GET + "A: b\r\n \r\n\r\n", 400),
    "space before the first header": ("GET /livez HTTP/1.1\r\n Host: x\r\n\r\n", 400),
    "tab before the first header": ("GET /livez HTTP/1.1\r\n\tHost: x\r\n\r\n", 400),
    "space before a colon": (GET + "Accept : */*\r\n\r\n", 400),
    "tab before a colon": (GET + "Accept\t: */*\r\n\r\n", 400),
    "space before the colon of Host": ("GET /livez HTTP/1.1\r\nHost : x\r\n\r\n", 400),
    "space before the colon of Content-Length": (BOX + "Content-Length : 5\r\n\r\nhello", 400),
    "space before the colon of Transfer-Encoding": (
        BOX + "Transfer-Encoding : chunked\r\n\r\n" + WHOLE, 400),
    "space within a name": (GET + "A b: c\r\n\r\n", 400),
    "name with a letter beyond ASCII": (GET + "\xc3\xa4: c\r\n\r\n", 400),
    "too many headers": (GET + "X: y\r\n" * 101 + "\r\n", 431),
    "too long a header": (GET + "X: " + "y" * 100000 + "\r\n\r\n", 431),
    "too long headers": (GET + ("X: " + "y" * 5000 + "\r\n") * 20 + "\r\n", 431),
    "too many parameters": ("GET /livez?" + "&a" * 1900 + " HTTP/1.1\r\nHost: x\r\n\r\n", 414),
    "parameters in 90 kB": ("GET /livez?" + "&" * 90000 + " HTTP/1.1\r\nHost: x\r\n\r\n", 414),
    "too many cookies": (GET + "Cookie: " + "a=b;" * 2000 + "\r\n\r\n", 431),
    "too many cookies with commas": (GET + "Cookie: " + "a," * 2000 + "\r\n\r\n", 431),
    "too long a cookie": (GET + "Cookie: a=" + "b" * 70000 + "\r\n\r\n", 431),
    # Host
    "no Host": ("GET /livez HTTP/1.1\r\n\r\n", 400),
    "no Host in absolute form": ("GET http://x/livez HTTP/1.1\r\n\r\n", 400),
    "two Hosts": (GET + "Host: y\r\n\r\n", 400),
    "the same Host twice": (GET + "Host: x\r\n\r\n", 400),
    "two Hosts, of other cases": (GET + "hOST: x\r\n\r\n", 400),
    "two Hosts in HTTP/1.0": ("GET /livez HTTP/1.0\r\nHost: x\r\nHost: y\r\n\r\n", 400),
    "empty Host": ("GET /livez HTTP/1.1\r\nHost:\r\n\r\n", 400),
    "blank Host": ("GET /livez HTTP/1.1\r\nHost:  \t \r\n\r\n", 400),
    "Host of two words": ("GET /livez HTTP/1.1\r\nHost: x y\r\n\r\n", 400),
    "Host is a list": ("GET /livez HTTP/1.1\r\nHost: x/y\r\n\r\n", 400),
    "Host is a URL": ("GET /livez HTTP/1.1\r\nHost: http://x/\r\n\r\n", 400),
    "Host with a user": ("GET /livez HTTP/1.1\r\nHost: me@x\r\n\r\n", 400),
    "Host with a word for a port": ("GET /livez HTTP/1.1\r\nHost: x:http\r\n\r\n", 400),
    "Host with two ports": ("GET /livez HTTP/1.1\r\nHost: x:1:2\r\n\r\n", 400),
    "Host with a port too large": ("GET /livez HTTP/1.1\r\nHost: x:65536\r\n\r\n", 400),
    "Host is a port alone": ("GET /livez HTTP/1.1\r\nHost: :80\r\n\r\n", 400),
    "Host with an open bracket": ("GET /livez HTTP/1.1\r\nHost: [::1\r\n\r\n", 400),
    "Host with empty brackets": ("GET /livez HTTP/1.1\r\nHost: []\r\n\r\n", 400),
    "Host with text after brackets": ("GET /livez HTTP/1.1\r\nHost: [::1]x\r\n\r\n", 400),
    "Host with text in brackets": ("GET /livez HTTP/1.1\r\nHost: [x::1]\r\n\r\n", 400),
    "Host with a quote": ("GET /livez HTTP/1.1\r\nHost: \"x\"\r\n\r\n", 400),
    "Host beyond ASCII": ("GET /livez HTTP/1.1\r\nHost: \xc3\xa4\r\n\r\n", 400),
    # Transfer-Encoding
    "chunked twice": (BOX + "Transfer-Encoding: chunked, chunked\r\n\r\n" + WHOLE, 400),
    "chunked in two headers": (BOX + "Transfer-Encoding: chunked\r\n" * 2 + "\r\n" + WHOLE, 400),
    "chunked and another": (BOX + "Transfer-Encoding: chunked\r\nTransfer-Encoding: gzip\r\n\r\n"
                            + WHOLE, 400),
    "gzip, chunked": (BOX + "Transfer-Encoding: gzip, chunked\r\n\r\n" + WHOLE, 400),
    "gzip": (BOX + "Transfer-Encoding: gzip\r\n\r\n" + WHOLE, 501),
    "identity": (BOX + "Transfer-Encoding: identity\r\n\r\n" + WHOLE, 501),
    "another coding": (BOX + "Transfer-Encoding: xchunked\r\n\r\n" + WHOLE, 501),
    "another coding before chunked": (BOX + "Transfer-Encoding: gzip\r\n"
                                      "Transfer-Encoding: chunked\r\n\r\n" + WHOLE, 501),
    "no coding": (BOX + "Transfer-Encoding:\r\n\r\n" + WHOLE, 400),
    "chunked with a parameter": (BOX + "Transfer-Encoding: chunked;q=1\r\n\r\n" + WHOLE, 400),
    "chunked in quotes": (BOX + "Transfer-Encoding: \"chunked\"\r\n\r\n" + WHOLE, 400),
    "space after chunked": (BOX + "Transfer-Encoding: chunked \r\n\r\n" + WHOLE, 400),
    "tab after chunked": (BOX + "Transfer-Encoding: chunked\t\r\n\r\n" + WHOLE, 400),
    "chunked and a comma": (BOX + "Transfer-Encoding: chunked,\r\n\r\n" + WHOLE, 400),
    "comma and chunked": (BOX + "Transfer-Encoding: ,chunked\r\n\r\n" + WHOLE, 400),
    "vertical tab and chunked": (BOX + "Transfer-Encoding: \vchunked\r\n\r\n" + WHOLE, 400),
    "chunked in HTTP/1.0": (CHUNKED.replace("HTTP/1.1", "HTTP/1.0") + WHOLE, 400),
    "length before chunked": (BOX + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
                              + WHOLE, 400),
    "length after chunked": (BOX + "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n"
                             + WHOLE, 400),
    "length of 0 and chunked": (BOX + "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n"
                                + WHOLE, 400),
    "GET with length and chunked": (GET + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"
                                    "0\r\n\r\n", 400),
    # Content-Length
    "lengths differ": (BOX + "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello", 400),
    "lengths are the same": (BOX + "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello", 400),
    "lengths in a list": (BOX + "Content-Length: 5, 5\r\n\r\nhello", 400),
    "length with a sign": (BOX + "Content-Length: +5\r\n\r\nhello", 400),
    "negative length": (BOX + "Content-Length: -5\r\n\r\nhello", 400),
    "hexadecimal length": (BOX + "Content-Length: 0x5\r\n\r\nhello", 400),
    "length with letters": (BOX + "Content-Length: 5a\r\n\r\nhello", 400),
    "length with a fraction": (BOX + "Content-Length: 5.0\r\n\r\nhello", 400),
    "length with an exponent": (BOX + "Content-Length: 1e1\r\n\r\nhello", 400),
    "length with a space": (BOX + "Content-Length: 5 0\r\n\r\nhello", 400),
    "length in quotes": (BOX + "Content-Length: \"5\"\r\n\r\nhello", 400),
    "space after the length": (BOX + "Content-Length: 5 \r\n\r\nhello", 400),
    "empty length": (BOX + "Content-Length:\r\n\r\nhello", 400),
    "blank length": (BOX + "Content-Length: \t\r\n\r\nhello", 400),
    "length beyond 64 bits": (BOX + "Content-Length: 18446744073709551621\r\n\r\nhello", 413),
    "length beyond 63 bits": (BOX + "Content-Length: 9223372036854775808\r\n\r\nhello", 413),
    "length of many digits": (BOX + "Content-Length: " + "9" * 500 + "\r\n\r\nhello", 413),
    # Chunks
    "chunk without a size": (CHUNKED + "\r\nhello\r\n0\r\n\r\n", 400),
    "chunk size is a word": (CHUNKED + "zz\r\nhello\r\n0\r\n\r\n", 400),
    "chunk size with 0x": (CHUNKED + "0x5\r\nhello\r\n0\r\n\r\n", 400),
    "chunk size with a sign": (CHUNKED + "+5\r\nhello\r\n0\r\n\r\n", 400),
    "negative chunk size": (CHUNKED + "-5\r\nhello\r\n0\r\n\r\n", 400),
    "space before the chunk size": (CHUNKED + " 5\r\nhello\r\n0\r\n\r\n", 400),
    "space after the chunk size": (CHUNKED + "5 \r\nhello\r\n0\r\n\r\n", 400),
    "tab after the chunk size": (CHUNKED + "5\t\r\nhello\r\n0\r\n\r\n", 400),
    "space before the extension": (CHUNKED + "5 ;a=b\r\nhello\r\n0\r\n\r\n", 400),
    "two chunk sizes": (CHUNKED + "5 5\r\nhello\r\n0\r\n\r\n", 400),
    "chunk size of 17 digits": (CHUNKED + "1" + "0" * 16 + "\r\nhello", 413),
    "chunk size of 64 bits": (CHUNKED + "f" * 16 + "\r\nhello", 413),
    "chunk line ends with LF": (CHUNKED + "5\nhello\r\n0\r\n\r\n", 400),
    "extension ends with LF": (CHUNKED + "5;a=b\nhello\r\n0\r\n\r\n", 400),
    "CR in an extension": (CHUNKED + "5;a=\rb\r\nhello\r\n0\r\n\r\n", 400),
    "NUL in an extension": (CHUNKED + "5;a=\0\r\nhello\r\n0\r\n\r\n", 400),
    "chunk ends with LF": (CHUNKED + "5\r\nhello\n0\r\n\r\n", 400),
    "chunk ends with CR": (CHUNKED + "5\r\nhello\r0\r\n\r\n", 400),
    "chunk longer than its size": (CHUNKED + "4\r\nhello\r\n0\r\n\r\n", 400),
    "chunk without an end": (CHUNKED + "5\r\nhello0\r\n\r\n", 400),
    "last chunk ends with LF": (CHUNKED + WHOLE[:-4] + "\n\r\n", 400),
    "body ends with LF": (CHUNKED + WHOLE[:-2] + "\n", 400),
    "extension above 4 KiB": (CHUNKED + "5;a=" + "b" * 4096 + "\r\nhello\r\n0\r\n\r\n", 400),
    "extension of 200 KiB": (CHUNKED + "5;a=" + "b" * 200000, 400),
    "chunk size of 17 zeros": (CHUNKED + "0" * 17 + "\r\n\r\n", 400),
    "zeros before the chunk size": (CHUNKED + "0" * 5000 + "5\r\nhello\r\n0\r\n\r\n", 400),
    # Trailers
    "trailer without a colon": (CHUNKED + WHOLE[:-2] + "trailer\r\n\r\n", 400),
    "folded trailer": (CHUNKED + WHOLE[:-2] + "A: b\r\n c\r\n\r\n", 400),
    "space before a trailer's colon": (CHUNKED + WHOLE[:-2] + "A : b\r\n\r\n", 400),
    "Content-Length in the trailers": (CHUNKED + WHOLE[:-2] + "Content-Length: 5\r\n\r\n", 400),
    "Transfer-Encoding in the trailers": (
        CHUNKED + WHOLE[:-2] + "Transfer-Encoding: chunked\r\n\r\n", 400),
    "Host in the trailers": (CHUNKED + WHOLE[:-2] + "Host: y\r\n\r\n", 400),
    "NUL in the trailers": (CHUNKED + WHOLE[:-2] + "A: \0\r\n\r\n", 400),
    "too long trailers": (CHUNKED + WHOLE[:-2] + "A: " + "b" * 9000 + "\r\n\r\n", 431),
    # Content
    "gzip content": (BOX + f"Content-Encoding: gzip\r\nContent-Length: {len(BODY)}\r\n\r\n" + BODY, 415),
    "two codings of content": (BOX + "Content-Encoding: identity, br\r\nContent-Length: "
                               f"{len(BODY)}\r\n\r\n" + BODY, 415),
    "gzip content in chunks": (
        CHUNKED.replace("\r\n\r\n", "\r\nContent-Encoding: gzip\r\n\r\n") + WHOLE, 415),
}
for code in [*range(1, 9), 11, 12, *range(14, 32), 127, 0]:
    if code not in (10, 13):
        REFUSED[f"{control(code)} in a value"] = (GET + f"A: b{chr(code)}c\r\n\r\n", 400)
for code in (0, 1, 9, 10, 13, 27, 31, 127):
    REFUSED[f"{control(code)} escaped in the target"] = (
        f"GET /livez?a=%{code:02x} HTTP/1.1\r\nHost: x\r\n\r\n", 400)
for code in (0, 1, 8, 11, 27, 127, 128, 255):
    REFUSED[f"{control(code)} in the target"] = (
        f"GET /livez?a={chr(code)} HTTP/1.1\r\nHost: x\r\n\r\n", 400)
for name in '()/<>?@[]\\{}",;=':
    REFUSED[f"{name} in a name"] = (GET + f"A{name}B: c\r\n\r\n", 400)

# Requests, and their status.
ANSWERED = {
    "plain": (GET + "\r\n", 200),
    "an empty line first": ("\r\n" + GET + "\r\n", 200),
    "HTTP/1.0": ("GET /livez HTTP/1.0\r\n\r\n", 200),
    "HTTP/1.0 with Host": ("GET /livez HTTP/1.0\r\nHost: x\r\n\r\n", 200),
    "HTTP/1.0 kept alive": ("GET /livez HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", 200),
    "absolute form": ("GET http://example.org/livez HTTP/1.1\r\nHost: example.org\r\n\r\n", 200),
    "absolute form with another Host": (
        "GET http://example.org:8700/livez HTTP/1.1\r\nHost: y\r\n\r\n", 200),
    "absolute form of https": ("GET HTTPS://example.org/livez HTTP/1.1\r\nHost: x\r\n\r\n", 200),
    "absolute form with a query": ("GET http://[::1]:80/readyz?verbose HTTP/1.1\r\nHost: x\r\n\r\n",
                                   200),
    "absolute form without a path": ("GET http://example.org HTTP/1.1\r\nHost: x\r\n\r\n", 200),
    "escaped letters": ("GET /l%69vez HTTP/1.1\r\nHost: x\r\n\r\n", 200),
    "OPTIONS": ("OPTIONS /livez HTTP/1.1\r\nHost: x\r\n\r\n", 204),
    "OPTIONS of all": ("OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", 204),
    "OPTIONS of nothing": ("OPTIONS /nothing HTTP/1.1\r\nHost: x\r\n\r\n", 404),
    "unknown method": ("BREW /livez HTTP/1.1\r\nHost: x\r\n\r\n", 405),
    "names of any case": ("GET /livez HTTP/1.1\r\nhOsT: x\r\n\r\n", 200),
    "no space after a colon": ("GET /livez HTTP/1.1\r\nHost:x\r\n\r\n", 200),
    "spaces around a value": ("GET /livez HTTP/1.1\r\nHost: \t x \t \r\n\r\n", 200),
    "Host with a port": ("GET /livez HTTP/1.1\r\nHost: example.org:8700\r\n\r\n", 200),
    "Host with an empty port": ("GET /livez HTTP/1.1\r\nHost: example.org:\r\n\r\n", 200),
    "Host is an address": ("GET /livez HTTP/1.1\r\nHost: 127.0.0.1:65535\r\n\r\n", 200),
    "Host in brackets": ("GET /livez HTTP/1.1\r\nHost: [2001:db8::1]:8700\r\n\r\n", 200),
    "Host with an underscore": ("GET /livez HTTP/1.1\r\nHost: my_service-1.local\r\n\r\n", 200),
    "empty value": (GET + "A:\r\n\r\n", 200),
    "value beyond ASCII": (GET + "A: \xc3\xa4 \xff\r\n\r\n", 200),
    "tab in a value": (GET + "A: b\tc\r\n\r\n", 200),
    "every character of a token": (GET + "!#$%&'*+-.^_`|~09AZaz: c\r\n\r\n", 200),
    "100 headers": (GET + "X: y\r\n" * 99 + "\r\n", 200),
    "headers of 64 KiB": (GET + "X: " + "y" * 65536 + "\r\n\r\n", 200),
    "more parameters than any request has": (
        "GET /livez?" + "a&" * 1200 + " HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    "many cookies": (GET + "Cookie: " + "a=b; " * 1000 + "\r\n\r\n", 200),
    "long cookie": (GET + "Cookie: a=" + "b" * 40000 + "\r\n\r\n", 200),
    "long extensions of a body that is refused": (
        "PUT /v1/filters/box HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        + ("3e8;" + "x" * 3000 + "\r\n" + "a" * 1000 + "\r\n") * 100 + "0\r\n\r\n", 405),
    "GET with a body": (GET + "Content-Length: 5\r\n\r\nhello", 200),
    "zeros before the length": (BOX + f"Content-Length: 000{len(BODY)}\r\n\r\n" + BODY, 200),
    "spaces before the length": (BOX + f"Content-Length: \t {len(BODY)}\r\n\r\n" + BODY, 200),
    "chunked": (CHUNKED + WHOLE, 200),
    "Chunked": (BOX + "TRANSFER-ENCODING: \t Chunked\r\n\r\n" + WHOLE, 200),
    "chunk sizes in capitals": (CHUNKED + f"{len(BODY):X}" + WHOLE[len(f"{len(BODY):x}"):], 200),
    "chunk size with zeros": (CHUNKED + "000000" + WHOLE, 200),
    "many chunks": (CHUNKED + "".join(f"1\r\n{c}\r\n" for c in BODY) + "0\r\n\r\n", 200),
    "extension": (CHUNKED + "1;a=b\r\n" + BODY[0] + f"\r\n{len(BODY) - 1:x};c\r\n" + BODY[1:]
                  + "\r\n0;d=\"e\"\r\n\r\n", 200),
    "extension of 4 KiB": (CHUNKED + "1;" + "a" * 4000 + "\r\n" + BODY[0] + "\r\n"
                           f"{len(BODY) - 1:x}\r\n" + BODY[1:] + "\r\n0\r\n\r\n", 200),
    "trailers": (CHUNKED + WHOLE[:-2] + "Digest: x\r\nA: b\r\n\r\n", 200),
    "identity content": (BOX + f"Content-Encoding: Identity\r\nContent-Length: {len(BODY)}\r\n\r\n"
                         + BODY, 200),
    "coding without content": (GET + "Content-Encoding: gzip\r\n\r\n", 200),
}


def ask(connection, text):
    """Sends it, and returns the answer."""
    connection.sendall(text.encode("latin-1"))
    return read_answer(connection)


@pytest.mark.parametrize("name", REFUSED)
def test_refused(service, name):
    text, status = REFUSED[name]
    with service.socket() as connection:
        answer = ask(connection, text)
        assert answer.status == status, answer
        assert answer.problem
        assert status == 415 or not connection.recv(1), "the connection stays open"


@pytest.mark.parametrize("name", ANSWERED)
def test_answered(service, name):
    text, status = ANSWERED[name]
    with service.socket() as connection:
        answer = ask(connection, text)
        assert answer.status == status, answer
        if text.startswith("POST"):
            assert answer.pixels.shape == SMALL.shape
        if name in ("HTTP/1.0", "HTTP/1.0 with Host"):
            assert not connection.recv(1), "the connection stays open"
        else:
            assert ask(connection, GET + "\r\n").status == 200, "the next request"


def test_there_are_many():
    assert len(REFUSED) + len(ANSWERED) >= 200


def test_every_byte_alone(service):
    """Cut anywhere, a request is the same."""
    for text, status in (REFUSED["chunk longer than its size"], REFUSED["two Hosts"],
                         ANSWERED["extension"], ANSWERED["trailers"]):
        with service.socket() as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for byte in text.encode("latin-1"):
                try:
                    connection.sendall(bytes([byte]))
                except OSError:
                    break  # refused before its end
            assert read_answer(connection).status == status


def test_requests_before_a_fault(service):
    """Those in the same packet are answered, in order; then comes the refusal, and the end."""
    text = GET + "\r\n" + CHUNKED + WHOLE + GET + "\r\n" + "GET /livez HTTP/1.1\r\n\r\n" + GET + "\r\n"
    with service.socket() as connection:
        connection.sendall(text.encode("latin-1"))
        found = connection.makefile("rb").read()
    statuses = re.findall(rb"HTTP/1.1 (\d+) ", found)
    assert statuses == [b"200", b"200", b"200", b"400"], found


def test_after_the_last_request(service):
    """Bytes that follow a request that ends its connection are not read."""
    with service.socket() as connection:
        connection.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n\0\0\0garbage")
        found = connection.makefile("rb").read()
    assert found.count(b"HTTP/1.1 ") == 1 and found.startswith(b"HTTP/1.1 200"), found


def test_last_request_in_the_grammars_eyes(service):
    """A request that the library takes for another's predecessor, because of the space."""
    with service.socket() as connection:
        connection.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close \r\n\r\n"
                           b"GET /livez HTTP/1.1\r\n\r\n")
        assert connection.makefile("rb").read().count(b"HTTP/1.1 200") == 1


def test_answer_while_sending(service):
    """The refusal reaches a client that goes on sending, which does not hold its connection for long."""
    with service.socket() as connection:
        connection.sendall((CHUNKED + "zz\r\n").encode("latin-1"))
        for _ in range(50):
            connection.sendall(b"x" * 65536)
        assert read_answer(connection).status == 400
        began = time.monotonic()
        with pytest.raises(OSError):
            while time.monotonic() - began < 60:
                connection.sendall(b"x" * 65536)


def test_options(service):
    answer = service.request("OPTIONS", "/v1/filters/box")
    assert answer.status == 204 and not answer.body
    assert answer.headers["Allow"] == "OPTIONS, POST, GET, HEAD"
    assert "DELETE" in service.request("OPTIONS", "*").headers["Allow"]


def test_content_coding(service):
    answer = service.post("/v1/filters/box", b"x", headers={"Content-Encoding": "br"})
    problem = answer.refused(415, "content-coded")
    assert "br" in problem["detail"] and answer.headers["Accept-Encoding"] == "identity"


def test_refusals_are_counted(service):
    def count():
        return service.total("convolved_requests_rejected_total", reason="bad-request")
    before = count()
    for _ in range(3):
        with service.socket() as connection:
            assert ask(connection, "nonsense\r\n").status == 400
    assert count() == before + 3
    service.rest()


# The same within TLS ------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def encrypted(launch, tmp_path_factory):
    """A service with TLS: (its name and port, a context that trusts it)."""
    certificate, key = localhost_certificate(tmp_path_factory.mktemp("tls"))
    port = free_port()
    with launch("--listen", f"tls:127.0.0.1:{port}", "--tls-certificate", str(certificate),
                "--tls-key", str(key)):
        yield port, ssl.create_default_context(cafile=certificate)


def wrapped(encrypted):
    port, context = encrypted
    return context.wrap_socket(socket.create_connection(("127.0.0.1", port), timeout=60),
                               server_hostname="localhost")


@pytest.mark.parametrize("name", ["two Hosts", "chunk longer than its size", "NUL in an extension",
                                  "extension of 200 KiB", "gzip content", "too many parameters"])
def test_refused_in_tls(encrypted, name):
    text, status = REFUSED[name]
    with wrapped(encrypted) as connection:
        assert ask(connection, text).status == status
        assert ask(connection, GET + "\r\n").status == 200 if status == 415 else (
            not connection.recv(1))


@pytest.mark.parametrize("name", ["chunked", "trailers", "absolute form", "many chunks",
                                  "long extensions of a body that is refused", "many cookies"])
def test_answered_in_tls(encrypted, name):
    with wrapped(encrypted) as connection:
        assert ask(connection, ANSWERED[name][0]).status == ANSWERED[name][1]
        assert ask(connection, GET + "\r\n").status == 200


@pytest.mark.parametrize("options, taken", [
    (["-tls1_3"], True), (["-tls1_2"], True), (["-tls1_1"], False),
    (["-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-GCM-SHA256"], True),
    (["-tls1_2", "-cipher", "ECDHE-ECDSA-CHACHA20-POLY1305"], True),
    (["-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-SHA"], False),
    (["-tls1_2", "-cipher", "ECDHE-ECDSA-AES256-SHA384"], False),
    (["-tls1_3", "-groups", "ffdhe2048"], False),
], ids=lambda value: " ".join(value) if isinstance(value, list) else str(value))
def test_suites(encrypted, options, taken):
    done = subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{encrypted[0]}", *options,
                           *([] if "-cipher" in options else ["-cipher", "ALL:@SECLEVEL=0"])],
                          input="", capture_output=True, text=True, timeout=60)
    assert ("Cipher is (NONE)" not in done.stdout and "Cipher is" in done.stdout) == taken, done.stdout


def test_large_body_in_tls(encrypted):
    pixels = np.random.default_rng(1).integers(0, 256, (1500, 1000, 3), np.uint8)
    with wrapped(encrypted) as connection:
        connection.sendall(f"POST /v1/filters/convolve?kernel=1&raw={raw_kind(pixels)}&format=raw "
                           f"HTTP/1.1\r\nHost: x\r\nContent-Length: {pixels.nbytes}\r\n\r\n".encode()
                           + pixels.tobytes())
        assert (read_answer(connection).pixels == pixels).all()


FORM = "POST /v1/filters/box HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=B\r\n"
LONG = 30 << 20
# name: (bytes before a long body, the status); each is refused, and there is more to come.
LONG_BODIES = {
    "no such filter": ("POST /v1/filters/none HTTP/1.1\r\nHost: x\r\n"
                       "Transfer-Encoding: chunked\r\n\r\n" + f"{LONG:x}\r\n", 404),
    "no such method": ("PUT /v1/filters/box HTTP/1.1\r\nHost: x\r\n"
                       "Transfer-Encoding: chunked\r\n\r\n" + f"{LONG:x}\r\n", 405),
    "malformed form": (FORM + f"Content-Length: {LONG}\r\n\r\n--B\r\nnonsense\r\n", 400),
    "text of a form too long": (FORM + f"Content-Length: {LONG}\r\n\r\n--B\r\nContent-Disposition: "
                                "form-data; name=sigma\r\n\r\n", 400),
}


@pytest.mark.parametrize("name", LONG_BODIES)
@pytest.mark.parametrize("secure", [False, True], ids=["plain", "tls"])
def test_long_body_that_is_refused(service, encrypted, secure, name):
    """A client that sends all of it before it looks finds the answer, not a reset."""
    text, status = LONG_BODIES[name]
    with (wrapped(encrypted) if secure else service.socket()) as connection:
        connection.sendall(text.encode())
        for _ in range(LONG >> 20):
            connection.sendall(b"a" * (1 << 20))
        answer = read_answer(connection)
        assert answer.status == status and answer.problem, answer
