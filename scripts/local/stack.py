"""The local stack: a local AWS, the deployed app, warm functions, bulk workers, real records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Self

from handlers.effects.documents import index_body
from handlers.jobs.words.record_schema import RecordSchema
from handlers.settings import EffectSettings
from scripts.opensearch.embedded import EmbeddedSearch

from . import DEFAULT_NAME, airports, deploy, ministack, processes, warming
from .api import Api
from .clients import Clients
from .deploy import Deployed
from .errors import AlreadyUp, LocalError, NotUp
from .identity import Issuer
from .processes import Process
from .settings import AWS_STAND_IN, SEARCH_STAND_IN, Chosen, over, settings_anywhere
from .state import ROOT, StackFolder, State
from .steps import Steps
from .synthesis import Synthesis
from .target import not_up
from .worker import Workers

TOKEN_S = 24 * 3600


class LocalStack:
    """``with LocalStack("name") as stack: ...`` brings it up and takes it down; ``up``, ``attach``
    and ``down`` do the same across commands."""

    def __init__(
        self,
        name: str = DEFAULT_NAME,
        *,
        root: Path = ROOT,
        settings: Chosen | None = None,
        workers: int = 1,
        records: bool = True,
        search: bool = False,
        steps: Steps | None = None,
    ) -> None:
        """settings: what differs from ``settings.LOCAL``. workers: bulk workers to start.
        records: load the airports. search: have a search index, in the embedded engine."""
        self.name = name
        self.folder = StackFolder(name, root)
        self._settings = settings
        self._worker_count = workers
        self._with_records = records
        self._with_search = search
        self._steps = steps or Steps(quiet=True)
        self._state = State()

    # --- life --------------------------------------------------------------------------------

    def up(self) -> Self:
        """Start everything. Raises AlreadyUp when it runs; LocalError when a part can't start.
        Whatever stops it half-way, Ctrl-C too, nothing is left running."""
        with self.folder.exclusive():
            if self.folder.read().up:
                raise AlreadyUp(
                    f"the stack {self.name!r} is already up. Stop it with "
                    f"`fairlane local down --name {self.name}`, or start another one beside it "
                    "with another --name"
                )
            self._stop(self.folder.read())
            self.folder.clear()
            try:
                self._start()
            except BaseException:
                self._stop(self._state)
                self.folder.clear(keep_logs=True)
                raise
        return self

    def attach(self) -> Self:
        """Take over a stack that an earlier command started. Raises NotUp."""
        state = self.folder.read()
        if not state.up:
            raise NotUp(not_up(self.name))
        self._state = state
        return self

    def down(self) -> int:
        """Stop what this stack started, and nothing else; returns how many processes still ran."""
        with self.folder.exclusive():
            state = self.folder.read()
            running = sum(process.alive() for process in _processes(state))
            self._stop(state)
            self.folder.clear()
            self._state = State()
        return running

    def __enter__(self) -> Self:
        return self.up()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.down()

    # --- parts -------------------------------------------------------------------------------

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
    def credentials(self) -> Mapping[str, str]:
        """What an AWS client finds them by, and the region, in the environment."""
        return ministack.CREDENTIALS

    @cached_property
    def clients(self) -> Clients:
        return Clients(self._state.port)

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
            task_definition=self.deployed.only("AWS::ECS::TaskDefinition"),
            port=self._state.port,
            folder=self.folder.path,
            known=self._state.workers,
            changed=self._workers_changed,
        )

    def load_airports(self) -> int:
        """Write the airports into the deployed record table (those there are replaced)."""
        count = sum(map(len, airports.airports_by_tenant().values()))
        with self._steps.step("Loading airports", count) as advance:
            return airports.load(
                self.clients.dynamodb, self.deployed.outputs["RecordsTable"], loaded=advance
            )

    # --- inside ------------------------------------------------------------------------------

    def _start(self) -> None:
        step = self._steps.step
        with self._synthesis() as synthesis:
            with step("Starting the local AWS"):
                _, port = ministack.start(
                    self.folder.path, lambda aws, port: self._save(aws=aws, port=port)
                )
            if self._with_search:
                with step("Starting the search engine"):
                    self._start_search()
            with step(
                "Taking the app as synthesised before"
                if synthesis.as_before
                else "Synthesising the app"
            ):
                assembly = synthesis.assembly(self._addresses())
        with step("Deploying it"):
            deployed = deploy.deploy(self.clients, assembly)
            self.issuer.publish(self.clients.s3)
            self._save(deployed=deployed, api_url=_api_url(port, deployed))
        with step("Warming the functions"):
            warming.warm(self.clients, self.api)
        with step("Starting bulk workers"):
            self.workers.start(self._worker_count)
        if self._with_records:
            self.load_airports()
        self._check_alive()
        self._save(ready=True)

    def _synthesis(self) -> Synthesis:
        """Of the app with this stack's settings, with stand-ins for the addresses."""
        chosen = self._settings or {}
        if self._with_search:
            chosen = over(chosen, {"effects": {"search_url": SEARCH_STAND_IN}})
        return Synthesis(settings_anywhere(chosen), self.folder.path / "cdk.out")

    def _addresses(self) -> dict[str, str]:
        return {AWS_STAND_IN: self.endpoint, SEARCH_STAND_IN: self._state.search_url}

    def _start_search(self) -> None:
        """It holds an empty index afterwards."""
        engine = EmbeddedSearch(
            self.folder.path, started=lambda process: self._save(search=process)
        ).up()
        with engine.client() as client:
            index = EffectSettings().search_index
            client.indices.create(index=index, body=index_body(RecordSchema()))
        self._save(search_url=engine.url)

    def _save(self, **changes: object) -> None:
        self._state = self._state.model_copy(update=changes)
        self.folder.write(self._state)

    def _workers_changed(self, workers: Sequence[Process]) -> None:
        self._save(workers=tuple(workers))

    def _check_alive(self) -> None:
        for process in _processes(self._state):
            if not process.alive():
                raise LocalError(
                    f"a process of the stack ended at once. Its last words ({process.log}):\n"
                    + process.tail()
                )

    def _stop(self, state: State) -> None:
        # Workers first: they end better while the AWS they talk to still answers.
        processes.stop(state.workers, grace=ministack.STOP_GRACE_S)
        if state.aws:
            ministack.stop(state.aws)
        if state.search:
            processes.stop([state.search], grace=ministack.STOP_GRACE_S)
        for part in ("api", "clients", "workers", "issuer"):
            self.__dict__.pop(part, None)


def _processes(state: State) -> tuple[Process, ...]:
    return (*state.workers, *(process for process in (state.aws, state.search) if process))


def _api_url(port: int, deployed: Deployed) -> str:
    """By path, so that no Host header is needed; see ministack's execute-api addresses."""
    api = deployed.only("AWS::ApiGateway::RestApi")
    stage = deployed.only("AWS::ApiGateway::Stage")
    return f"{ministack.endpoint(port)}/_aws/execute-api/{api}/{stage}"
