"""The client with moto's object store, whose objects boto3 writes and reads, and whose signatures
botocore computes: not a line of it is ours. `./dev bench s3` runs this."""
import json
import os

import boto3
import pytest

from client import complains, ppm, run

# Up to the fourth action nobody is asked who they are: those that make a user with keys. To be set
# before the import.
os.environ["INITIAL_NO_AUTH_ACTION_COUNT"] = "3"
from moto.server import ThreadedMotoServer  # noqa: E402

NAMES = ("a.ppm", "deep/down/a b.ppm", "1+1=2&c;d?e#f%20g.ppm", "ü/字.ppm", "x//y.ppm", "it's*(!)[]{}~@:,$|.ppm")
LARGE = ppm(1, 1500, 1000)


@pytest.fixture(scope="module")
def keys():
    """A store that checks signatures, with two buckets; the settings for the AWS tools."""
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


@pytest.fixture(scope="module")
def buckets(keys):
    """boto3's client of it."""
    client = boto3.client("s3", endpoint_url=keys["AWS_ENDPOINT_URL"], region_name=keys["AWS_REGION"],
                          aws_access_key_id=keys["AWS_ACCESS_KEY_ID"],
                          aws_secret_access_key=keys["AWS_SECRET_ACCESS_KEY"])
    for bucket in ("from", "into"):
        client.create_bucket(Bucket=bucket)
    return client


def test_objects(server, buckets, keys):
    asked = server()
    for name, body in [*((name, ppm(len(name))) for name in NAMES), ("large.ppm", LARGE)]:
        buckets.put_object(Bucket="from", Key=name, Body=body)
        run(asked.url, "box", f"s3://from/{name}", "-o", f"s3://into/{name}", variables=keys)
        made = buckets.get_object(Bucket="into", Key=name)
        assert (made["Body"].read(), made["ContentType"]) == (body[::-1], "image/x-portable-pixmap"), name


@pytest.mark.parametrize("place", ["s3://into/x/", "out"])
def test_lists(server, buckets, keys, tmp_path, place):
    asked = server()
    names = "".join(f"s3://from/list/{i} .ppm\n" for i in range(30)).encode()

    def put(i, body):
        buckets.put_object(Bucket="from", Key=f"list/{i} .ppm", Body=body)

    def made():
        before = len(asked.bodies)
        run(asked.url, "box", "--files-from", "-", "-o", place, "-j", 8, "--format", "ppm", input=names, variables=keys,
            cwd=tmp_path)
        return sorted(asked.bodies[before:])

    for i in range(30):
        put(i, ppm(i))
    assert made() == sorted(map(ppm, range(30))) and made() == []
    put(3, ppm(100))
    assert made() == [ppm(100)] and made() == []


def test_prefixes(server, buckets, keys):
    """They have more than a page of objects."""
    asked, names = server(), [*NAMES, *(f"{i}.ppm" for i in range(1100))]
    for name in names:
        buckets.put_object(Bucket="from", Key=f"pre/{name}", Body=name.encode())
    run(asked.url, "box", "s3://from/pre/", "-o", "s3://into/pre/", "-j", 8, variables=keys)
    assert sorted(asked.bodies) == sorted(name.encode() for name in names)
    for name in names[:10]:
        assert buckets.get_object(Bucket="into", Key=f"pre/{name}")["Body"].read() == name.encode()[::-1]


def test_conditions(server, buckets, keys, tmp_path):
    def answer(handler):
        buckets.put_object(Bucket="into", Key="meanwhile.ppm", Body=b"precious")
        return 200, {}, handler.body

    (tmp_path / "a.ppm").write_bytes(ppm())
    complains("an object has been written there meanwhile", server(answer).url, "box", tmp_path / "a.ppm", "-o",
              "s3://into/meanwhile.ppm", variables=keys)
    assert buckets.get_object(Bucket="into", Key="meanwhile.ppm")["Body"].read() == b"precious"


@pytest.mark.parametrize("change, name, words", [
    ({}, "s3://from/none.ppm", "there is no such object"),
    ({"AWS_SECRET_ACCESS_KEY": "wrong"}, "s3://from/a.ppm", "the signature is not that of the access key")])
def test_refusals(server, buckets, keys, tmp_path, change, name, words):
    _, said = run(server().url, "box", name, "-o", tmp_path / "out.ppm", status=1, variables={**keys, **change})
    assert said.startswith(f"convolve: {name}: {words}"), said
