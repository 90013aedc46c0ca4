"""Addresses that are handed out name the region, which newer regions and new buckets insist on."""

from __future__ import annotations

from urllib.parse import urlsplit

import boto3
import pytest

from handlers.aws.clients import config, s3_config
from handlers.aws.payload_store import S3PayloadStore
from handlers.aws.upload_store import S3UploadStore

REGIONS = ("us-east-1", "eu-central-1", "ap-southeast-5")


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "id")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("region", REGIONS)
def test_the_host_of_an_upload_form_names_bucket_and_region(region: str) -> None:
    client = boto3.client("s3", region_name=region, config=s3_config())
    address = S3UploadStore(client, "a-bucket", max_bytes=10).address("u", {}, seconds=60)
    assert urlsplit(address.url).hostname == f"a-bucket.s3.{region}.amazonaws.com"


@pytest.mark.parametrize("region", REGIONS)
def test_the_host_of_a_report_link_names_bucket_and_region(region: str) -> None:
    client = boto3.client("s3", region_name=region, config=s3_config())
    link = S3PayloadStore(client, "a-bucket").link("r", file_name="r.csv", seconds=60)
    assert urlsplit(link).hostname == f"a-bucket.s3.{region}.amazonaws.com"


@pytest.mark.parametrize("variable", ["AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"])
def test_an_endpoint_of_ones_own_is_used_as_it_is(
    monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, "http://localhost:4566")
    client = boto3.client("s3", region_name=REGIONS[0], config=s3_config())
    address = S3UploadStore(client, "a-bucket", max_bytes=10).address("u", {}, seconds=60)
    assert address.url.startswith("http://localhost:4566/a-bucket")


def test_without_it_the_host_names_no_region() -> None:
    client = boto3.client("s3", region_name=REGIONS[1], config=config(signature="s3v4"))
    link = S3PayloadStore(client, "a-bucket").link("r", file_name="r.csv", seconds=60)
    assert REGIONS[1] not in str(urlsplit(link).hostname)
