"""The client with moto's object store, whose objects boto3 writes and reads, and whose signatures
botocore computes: not a line of it is ours. `./dev bench s3` runs this."""
import json
import os

import boto3
import pytest

from client import ppm, run

# Up to the fourth action nobody is asked who they are: those that make a user with keys. To be set
# before the import.
os.environ["INITIAL_NO_AUTH_ACTION_COUNT"] = "3"
from moto.server import ThreadedMotoServer  # noqa: E402

NAMES = ("a.ppm", "deep/down/a b.ppm", "1+1=2&c;d?e#f%20g.ppm", "ü/字.ppm", "x//y.ppm", "it's*(!)[]{}~@:,$|.ppm")


@pytest.fixture(scope="module")
def keys():
    """A store that checks signatures, and the settings for the AWS tools."""
    server = ThreadedMotoServer(port=0)
    server.start()
    url = "http://{}:{}".format(*server.get_host_and_port())
    iam = boto3.client("iam", endpoint_url=url, region_name="us-east-1", aws_access_key_id="none",
                       aws_secret_access_key="none")
    iam.create_user(UserName="u")
    iam.put_user_policy(UserName="u", PolicyName="p", PolicyDocument=json.dumps(
        {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}))
    key = iam.create_access_key(UserName="u")["AccessKey"]
    yield {"AWS_ENDPOINT_URL": url, "AWS_REGION": "us-east-1", "AWS_DEFAULT_REGION": "us-east-1",
           "AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
           "AWS_ACCESS_KEY_ID": key["AccessKeyId"], "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"]}
    server.stop()


class Buckets:
    """Two buckets, whose objects boto3 writes and reads."""

    def __init__(self, keys):
        self.client = boto3.client("s3", endpoint_url=keys["AWS_ENDPOINT_URL"], region_name=keys["AWS_REGION"],
                                   aws_access_key_id=keys["AWS_ACCESS_KEY_ID"],
                                   aws_secret_access_key=keys["AWS_SECRET_ACCESS_KEY"])
        for bucket in ("photographs", "results"):
            self.client.create_bucket(Bucket=bucket)

    def put(self, name, body):
        self.client.put_object(Bucket="photographs", Key=name, Body=body)

    def result(self, name):
        """Returns (content, type)."""
        got = self.client.get_object(Bucket="results", Key=name)
        return got["Body"].read(), got["ContentType"]


@pytest.fixture(scope="module")
def buckets(keys):
    return Buckets(keys)


def test_objects(server, service, buckets, keys):
    for name in NAMES:
        buckets.put(name, ppm(len(name)))
        run(server().url, "box", f"s3://photographs/{name}", "-o", f"s3://results/{name}", variables=keys)
        assert buckets.result(name) == (ppm(len(name))[::-1], "image/x-portable-pixmap"), name
    run(service.url, "gaussian", "--sigma", 2, "s3://photographs/a.ppm", "-o", "s3://results/a.png", variables=keys)
    right = service.post("/v1/filters/gaussian?sigma=2&format=png", ppm(5))
    assert buckets.result("a.png") == (right.body, "image/png")
    large = ppm(1, 1500, 1000)
    buckets.put("large.ppm", large)
    run(server().url, "box", "s3://photographs/large.ppm", "-o", "s3://results/large.ppm", variables=keys)
    assert buckets.result("large.ppm")[0] == large[::-1]


def test_lists(server, buckets, keys, tmp_path):
    asked = server()
    for i in range(30):
        buckets.put(f"list/{i} .ppm", ppm(i))
    names = "".join(f"s3://photographs/list/{i} .ppm\n" for i in range(30)).encode()

    def made(place):
        before = len(asked.bodies)
        run(asked.url, "box", "--files-from", "-", "-o", place, "-j", 8, "--format", "ppm", input=names, variables=keys,
            cwd=tmp_path)
        return sorted(asked.bodies[before:])

    for place in ("s3://results/x/", "out"):
        buckets.put("list/3 .ppm", ppm(3))
        assert made(place) == sorted(map(ppm, range(30))) and made(place) == []
        buckets.put("list/3 .ppm", ppm(100))
        assert made(place) == [ppm(100)]
    assert buckets.result("x/list/3 .ppm")[0] == ppm(100)[::-1]


@pytest.mark.parametrize("change, name, words", [
    ({}, "s3://photographs/none.ppm", "there is no such object"),
    ({}, "s3://nobody/a.ppm", "there is no such bucket"),
    ({"AWS_SECRET_ACCESS_KEY": "wrong"}, "s3://photographs/a.ppm", "the signature is not that of the access key"),
    ({"AWS_ACCESS_KEY_ID": "AKIAWRONG"}, "s3://photographs/a.ppm", "the store does not know the access key"),
])
def test_refusals(server, buckets, keys, tmp_path, change, name, words):
    _, said = run(server().url, "box", name, "-o", tmp_path / "out.ppm", status=1, variables={**keys, **change})
    assert said.startswith(f"convolve: {name}: {words}"), said
