"""The client with moto's object store, whose objects boto3 writes and reads, and whose signatures
botocore computes: not a line of it is ours. `./dev s3` runs this."""
import base64
import json
import os
import subprocess

import pytest

from client import ppm, run
from service import free_port, poll

MOTO = os.environ["MOTO"]
NAMES = ("a.ppm", "deep/down/a b.ppm", "1+1=2&c;d?e#f%20g.ppm", "ü/字.ppm", "x//y.ppm", "it's*(!)[]{}~@:,$|.ppm")

# Reads {"do": …} lines, and answers each with a line.
BOTO = """
import base64, json, sys, boto3
s3 = boto3.client("s3")
for line in sys.stdin:
    do = json.loads(line)
    name = {"Bucket": do["bucket"], "Key": do.get("key", "")}
    answer = {}
    if do["do"] == "create":
        s3.create_bucket(Bucket=do["bucket"])
    elif do["do"] == "put":
        s3.put_object(**name, Body=base64.b64decode(do["body"]))
    elif do["do"] == "get":
        got = s3.get_object(**name)
        answer = {"body": base64.b64encode(got["Body"].read()).decode(), "type": got["ContentType"],
                  "metadata": got["Metadata"], "modified": got["LastModified"].isoformat()}
    print(json.dumps(answer), flush=True)
"""


class Boto:
    def __init__(self, variables):
        self.process = subprocess.Popen([MOTO, "-c", BOTO], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env={**os.environ, **variables})

    def __call__(self, do, name, **more):
        bucket, _, key = name.removeprefix("s3://").partition("/")
        print(json.dumps({"do": do, "bucket": bucket, "key": key, **more}), file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    """A store that checks signatures, and the settings for the AWS tools."""
    port, log = free_port(), tmp_path_factory.mktemp("moto") / "log"
    url = f"http://127.0.0.1:{port}"
    # Up to the fourth action nobody is asked who they are: those that make a user with keys.
    with log.open("wb") as output:
        server = subprocess.Popen([MOTO, "-m", "moto.server", "-p", str(port)], stdout=output, stderr=output,
                                  env={**os.environ, "INITIAL_NO_AUTH_ACTION_COUNT": "3"})
    poll(lambda: b"Running on" in log.read_bytes() or server.poll() is not None, 120, "moto")
    assert server.poll() is None, log.read_text()
    script = """
import json, boto3
iam = boto3.client("iam")
iam.create_user(UserName="u")
iam.put_user_policy(UserName="u", PolicyName="p", PolicyDocument=json.dumps(
    {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}))
key = iam.create_access_key(UserName="u")["AccessKey"]
print(json.dumps([key["AccessKeyId"], key["SecretAccessKey"]]))
"""
    common = {"AWS_ENDPOINT_URL": url, "AWS_REGION": "us-east-1", "AWS_DEFAULT_REGION": "us-east-1",
              "AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null"}
    made = subprocess.run([MOTO, "-c", script], check=True, stdout=subprocess.PIPE, env={
        **os.environ, **common, "AWS_ACCESS_KEY_ID": "none", "AWS_SECRET_ACCESS_KEY": "none"})
    access, secret = json.loads(made.stdout)
    yield {**common, "AWS_ACCESS_KEY_ID": access, "AWS_SECRET_ACCESS_KEY": secret}
    server.kill()
    server.wait()


@pytest.fixture(scope="module")
def boto(keys):
    boto = Boto(keys)
    boto("create", "s3://photographs")
    boto("create", "s3://results")
    yield boto
    boto.process.kill()
    boto.process.wait()


def encoded(body):
    return base64.b64encode(body).decode()


def test_objects(server, service, boto, keys, tmp_path):
    for name in NAMES:
        boto("put", f"s3://photographs/{name}", body=encoded(ppm(len(name))))
        run(server().url, "box", f"s3://photographs/{name}", "-o", f"s3://results/{name}", variables=keys)
        got = boto("get", f"s3://results/{name}")
        assert got["body"] == encoded(ppm(len(name))[::-1]) and got["type"] == "image/x-portable-pixmap", name
    run(service.url, "gaussian", "--sigma", 2, "s3://photographs/a.ppm", "-o", "s3://results/a.png", variables=keys)
    got = boto("get", "s3://results/a.png")
    right = service.post("/v1/filters/gaussian?sigma=2&format=png", ppm(5))
    assert got["body"] == encoded(right.body) and got["type"] == "image/png"
    large = ppm(1, 1500, 1000)
    boto("put", "s3://photographs/large.ppm", body=encoded(large))
    run(server().url, "box", "s3://photographs/large.ppm", "-o", "s3://results/large.ppm", variables=keys)
    assert boto("get", "s3://results/large.ppm")["body"] == encoded(large[::-1])


def test_lists(server, boto, keys, tmp_path):
    asked = server()
    for i in range(30):
        boto("put", f"s3://photographs/list/{i} .ppm", body=encoded(ppm(i)))
    names = "".join(f"s3://photographs/list/{i} .ppm\n" for i in range(30)).encode()

    def made(place):
        before = len(asked.bodies)
        run(asked.url, "box", "--files-from", "-", "-o", place, "-j", 8, "--format", "ppm", input=names, variables=keys,
            cwd=tmp_path)
        return sorted(asked.bodies[before:])

    everything = sorted(ppm(i) for i in range(30))
    for place in ("s3://results/x/", "out"):
        boto("put", "s3://photographs/list/3 .ppm", body=encoded(ppm(3)))
        assert made(place) == everything and made(place) == []
        boto("put", "s3://photographs/list/3 .ppm", body=encoded(ppm(100)))
        assert made(place) == [ppm(100)]
    assert boto("get", "s3://results/x/list/3 .ppm")["body"] == encoded(ppm(100)[::-1])
    boto("put", "s3://results/y/list/5 .ppm", body=encoded(b"precious"))
    _, said = run(asked.url, "box", "--files-from", "-", "-o", "s3://results/y", "--format", "ppm", input=names,
                  variables=keys, status=1)
    assert said == ("convolve: s3://results/y/list/5 .ppm: the object is not a result of this command: --force replaces "
                    "it\n")
    assert boto("get", "s3://results/y/list/5 .ppm")["body"] == encoded(b"precious")


@pytest.mark.parametrize("change, name, words", [
    ({}, "s3://photographs/none.ppm", "there is no such object"),
    ({}, "s3://nobody/a.ppm", "there is no such bucket"),
    ({"AWS_SECRET_ACCESS_KEY": "wrong"}, "s3://photographs/a.ppm", "the signature is not that of the access key"),
    ({"AWS_ACCESS_KEY_ID": "AKIAWRONG"}, "s3://photographs/a.ppm", "the store does not know the access key"),
])
def test_refusals(server, boto, keys, tmp_path, change, name, words):
    _, said = run(server().url, "box", name, "-o", tmp_path / "out.ppm", status=1, variables={**keys, **change})
    assert said.startswith(f"convolve: {name}: {words}"), said
