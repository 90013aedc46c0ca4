"""The process's AWS session: the models are botocore's, found with less looking."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from botocore.config import Config
from botocore.exceptions import BotoCoreError
from botocore.loaders import Loader

from handlers.aws.session import ModelLoader, client, s3_client, session

if TYPE_CHECKING:
    from pathlib import Path

OURS = ("dynamodb", "sqs", "s3", "ecs", "events", "secretsmanager", "ssm")
REGION = Config(region_name="eu-west-1")


@pytest.mark.parametrize("kind", ["service-2", "endpoint-rule-set-1"])
@pytest.mark.parametrize("service", OURS)
def test_a_model_is_the_one_that_botocore_loads(service: str, kind: str) -> None:
    assert ModelLoader().load_service_model(service, kind) == Loader().load_service_model(
        service, kind
    )


def test_only_the_folders_of_the_service_are_looked_into(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []
    listdir = os.listdir

    def noted(path: str) -> list[str]:
        looked.append(os.path.basename(path))  # noqa: PTH119  botocore's paths are text
        return listdir(path)

    monkeypatch.setattr("os.listdir", noted)
    ModelLoader().load_service_model("dynamodb", "service-2")
    assert set(looked) <= {"data", "models", "dynamodb"}
    assert "dynamodb" in looked


def test_an_unknown_service_is_an_error() -> None:
    with pytest.raises(BotoCoreError, match="no-such-service"):
        client("no-such-service", REGION)


def test_a_folder_without_a_model_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(BotoCoreError, match="empty"):
        ModelLoader(extra_search_paths=[str(tmp_path)]).load_service_model("empty", "service-2")


def test_all_clients_come_from_one_session_and_its_loader() -> None:
    loader = session().get_component("data_loader")
    assert isinstance(loader, ModelLoader)
    assert client("sqs", REGION).meta.service_model.service_name == "sqs"
    for s3 in (s3_client(REGION), s3_client(REGION)):
        assert callable(s3.upload_fileobj)
    # boto3 adds folders to look in, and takes no other loader.
    assert session().get_component("data_loader") is loader
