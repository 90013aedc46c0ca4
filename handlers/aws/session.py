"""The AWS session of a process: every client is made here.

It is botocore's, which boto3's is built on. boto3 adds the transfer manager of S3, whose import is
slow; only clients of S3 are made through it.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from botocore.loaders import Loader
from botocore.session import Session, get_session

if TYPE_CHECKING:
    import boto3
    from botocore.config import Config
    from mypy_boto3_s3 import S3Client


class ModelLoader(Loader):
    """Loads the model of a service that is asked for by its name. botocore's loader lists the
    folders and versions of all four hundred services first, twice."""

    def list_available_services(self, type_name: str) -> list[str]:
        """Every service with a folder. One whose folder has no model of the type is found out when
        that is loaded."""
        del type_name
        folders = [Path(path) for path in self.search_paths if Path(path).is_dir()]
        return sorted({found.name for folder in folders for found in folder.iterdir()})


@cache
def session() -> Session:
    made = get_session()
    made.register_component("data_loader", ModelLoader())
    return made


def client(service: str, config: Config) -> Any:
    """A client of any service but S3; the caller names its type."""
    return session().create_client(service, config=config)


def s3_client(config: Config) -> S3Client:
    """With boto3's methods for transfers."""
    return _with_transfers().client("s3", config=config)


@cache
def _with_transfers() -> boto3.Session:
    """One: a second one for the same session would add the methods twice, which is refused."""
    import boto3  # noqa: PLC0415  slow to import, and most small jobs never need it

    return boto3.Session(botocore_session=session())
