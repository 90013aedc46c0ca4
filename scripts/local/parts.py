"""What a local stack that is up consists of, for programs that use it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

from handlers.jobs.storage.control_table import job_key

from . import DEFAULT_NAME, ministack
from .api import Api
from .clients import Clients
from .deploy import Deployed
from .errors import NotUp
from .identity import Issuer
from .processes import Process
from .project import PACKAGES
from .state import ROOT, StackFolder, State
from .worker import Workers

TOKEN_S = 24 * 3600


class Parts:
    """Each part is made when it is first asked for."""

    def __init__(self, name: str = DEFAULT_NAME, *, root: Path = ROOT) -> None:
        self.name = name
        self.folder = StackFolder(name, root)
        self._state = State()

    @property
    def state(self) -> State:
        return self._state

    @property
    def deployed(self) -> Deployed:
        if self._state.deployed is None:
            raise NotUp(f"the stack {self.name!r} is not deployed")
        return self._state.deployed

    @property
    def endpoint(self) -> str:
        """The address of the local AWS."""
        return ministack.endpoint(self._state.port)

    @property
    def addresses(self) -> dict[str, str]:
        """The same for an environment, with that of the database, which has its own."""
        return ministack.addresses(self._state.port, self._state.database_port)

    @property
    def credentials(self) -> Mapping[str, str]:
        """What an AWS client finds them by, and the region, in the environment."""
        return ministack.CREDENTIALS

    @cached_property
    def clients(self) -> Clients:
        return Clients(self._state.port, self._state.database_port)

    @cached_property
    def issuer(self) -> Issuer:
        return Issuer(self.folder.path)

    @cached_property
    def api(self) -> Api:
        return Api(
            self._state.api_url, lambda tenant: self.issuer.token(tenant, expires_in=TOKEN_S)
        )

    @cached_property
    def workers(self) -> Workers:
        return Workers(
            self.clients.ecs,
            credentials_of=self.clients.credentials_of if self._state.iam else None,
            task_definition=self.deployed.only("AWS::ECS::TaskDefinition"),
            addresses=self.addresses,
            folder=self.folder.path,
            code=self._state.code or PACKAGES,
            known=self._state.workers,
            changed=self._workers_changed,
        )

    def holdings(self) -> dict[str, int]:
        """How many records and jobs there are."""
        tables, count = self.deployed.outputs, self.clients.dynamodb.get_paginator("scan").paginate
        jobs = count(
            TableName=tables["ControlTable"],
            Select="COUNT",
            FilterExpression="sk = :job",
            ExpressionAttributeValues={":job": {"S": job_key("any").sk}},
        )
        return {
            "records": sum(
                page["Count"] for page in count(TableName=tables["RecordsTable"], Select="COUNT")
            ),
            "jobs": sum(page["Count"] for page in jobs),
        }

    def _save(self, **changes: object) -> None:
        self._state = self._state.model_copy(update=changes)
        self.folder.write(self._state)

    def _workers_changed(self, workers: Sequence[Process]) -> None:
        self._save(workers=tuple(workers))

    def _forget_parts(self) -> None:
        for part in ("api", "clients", "workers", "issuer"):
            self.__dict__.pop(part, None)
