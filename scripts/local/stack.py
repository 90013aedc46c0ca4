"""The local stack: a local AWS, the deployed app, warm functions, bulk workers, real records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from handlers.aws.attributes import Attributes
from handlers.settings import EffectSettings
from scripts.opensearch.embedded import EmbeddedSearch

from . import (
    DEFAULT_NAME,
    airports,
    deploy,
    index,
    ministack,
    processes,
    records,
    supervisor,
    tables,
    warming,
)
from .endings import ended_once, to_the_end
from .errors import AlreadyUp, LocalError, NotUp
from .own_code import keep_own_code
from .parts import TOKEN_S, Parts
from .project import PROJECT, cdk_json_of
from .settings import (
    AWS_STAND_IN,
    SEARCH_STAND_IN,
    Chosen,
    chosen_in,
    over,
    settings_anywhere,
)
from .state import ROOT, State
from .steps import Steps
from .synthesis import Synthesis
from .target import not_up

__all__ = ["TOKEN_S", "LocalStack"]


class LocalStack(Parts):
    """``with LocalStack("name") as stack: ...`` brings it up and takes it down; ``up``, ``attach``
    and ``down`` do the same across commands."""

    def __init__(  # noqa: PLR0913  each says what a stack has
        self,
        name: str = DEFAULT_NAME,
        *,
        root: Path = ROOT,
        settings: Chosen | None = None,
        workers: int = 1,
        records: bool | Path = True,
        search: bool = False,
        supervised: bool = False,
        iam: bool = False,
        steps: Steps | None = None,
    ) -> None:
        """settings: what differs from ``settings.LOCAL``. workers: bulk workers to start.
        records: load the airports, or those of a file, or none. search: have a search index, in
        the embedded engine. supervised: replace workers that end. iam: functions and workers may
        do what their roles allow, and nothing else."""
        super().__init__(name, root=root)
        self.project = PROJECT
        """Whose app is deployed."""
        self.measured = False
        """Times are taken on it: every process of a function that work may need is warm from the
        start, and not only one."""
        self.one_by_one = False
        """Its database works on one request after the other, however long one takes. Without effect
        with ``iam``, where the database is in the process of the local AWS."""
        self.with_cdk_json = False
        """It has what ``cdk.json`` chooses for a local stack, too (``settings.chosen_in``)."""
        self._settings = settings
        self._worker_count = workers
        self._with_records = records
        self._supervised = supervised
        self._with_search = search
        self._iam = iam
        self._steps = steps or Steps(quiet=True)

    # --- life --------------------------------------------------------------------------------

    def up(self) -> Self:
        """Start everything. Raises AlreadyUp when it runs; LocalError when a part can't start.
        Whatever stops it half-way, Ctrl-C too (also twice), nothing is left running."""
        own = records.read(self._with_records) if isinstance(self._with_records, Path) else None
        with ended_once(self._steps), self.folder.exclusive():
            if self.folder.read().up:
                raise AlreadyUp(
                    f"the stack {self.name!r} is already up. Stop it with "
                    f"`fairlane local down --name {self.name}`, or start another one beside it "
                    "with another --name"
                )
            self._stop(self.folder.read())
            self.folder.clear()
            try:
                self._start(own)
            except BaseException as error:
                self._stop(self._state)
                # Of Ctrl-C, even in the last moment, the logs say nothing.
                self.folder.clear(keep_logs=isinstance(error, Exception))
                raise
        return self

    def attach(self) -> Self:
        """Take over a stack that an earlier command started. Raises NotUp."""
        state = self.folder.read()
        if not state.up:
            raise NotUp(not_up(self.name))
        self._state = state
        self._forget_parts()  # made from what was known before
        return self

    def heal(self) -> list[str]:
        """Start again what has ended of a stack that is up; returns what was done, in words.
        Raises NotUp when the local AWS has ended, and the data with it."""
        with self.folder.exclusive():
            self.attach()
            return list(self._heal())

    def deploy(self) -> bool:
        """Bring a stack that is up to the code and settings of this moment; data and address stay.
        True when the deployed app has changed; the workers run the code of this moment in any
        case. Raises NotUp, and LocalError before anything is changed when data would be lost."""
        with self.folder.exclusive():
            self.attach()
            return self._update()

    def down(self, *, keep: Path | None = None) -> int:
        """Stop what this stack started, and nothing else; returns how many processes still ran.
        keep: a file for the records; the logs stay too. Ctrl-C takes effect before anything is
        stopped, or when all is."""
        with self.folder.exclusive():
            state = self.folder.read()
            if keep is not None:
                self.attach()
                table = self.deployed.outputs["RecordsTable"]
                with self._steps.step("Writing the records to a file"):
                    records.save(self.clients.dynamodb, table, keep)
            running = sum(process.alive() for process in state.processes)
            with to_the_end():
                self._stop(state)
                self.folder.clear(keep_logs=keep is not None)
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

    def load_airports(self) -> int:
        """Write the airports into the deployed record table (those there are replaced)."""
        count = sum(map(len, airports.airports_by_tenant().values()))
        with self._steps.step("Loading airports", count) as advance:
            return airports.load(
                self.clients.dynamodb, self.deployed.outputs["RecordsTable"], loaded=advance
            )

    # --- inside ------------------------------------------------------------------------------

    def _start(self, own: Sequence[Attributes] | None) -> None:
        self._save(wanted=self._worker_count, settings=self._settings or {}, iam=self._iam)
        step = self._steps.step
        with self._synthesis(self._settings or {}, search=self._with_search) as synthesis:
            with step("Starting the local AWS"):
                self._start_aws()
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
            tables.put(self.clients, deployed)
            self.issuer.publish(self.clients.s3)
            self._save(
                deployed=deployed,
                api_url=deployed.api_url(self.endpoint),
                code=keep_own_code(assembly, self.folder.path),
            )
        if self._with_search:
            index.create(self._state.search_url, self._effects)
        # The database works while the functions start.
        loader = ThreadPoolExecutor(1)
        try:
            loading = loader.submit(self._load_records, own)
            with step("Warming the functions"):
                warming.warm(self.clients, self.api, every=self.measured)
            with step("Starting bulk workers"):
                self.workers.start(self._worker_count)
            loading.result()
        finally:
            # A load that goes on meets a stopped database soon.
            loader.shutdown(wait=False, cancel_futures=True)
        if self._with_search:
            self._fill_index()
        if self._supervised:
            self._supervise()
        self._check_alive()
        self._save(ready=True)

    def _update(self) -> bool:
        before, step = self.deployed, self._steps.step
        chosen = self._state.settings if self._settings is None else self._settings
        searching = bool(self._state.search_url)
        synthesis = self._synthesis(chosen, search=searching)
        with step("Synthesising the app"), synthesis:
            assembly = synthesis.assembly(self._addresses())
        with step("Deploying it"):
            template = deploy.template(self.clients.cloudformation, before.stack)
            deployed = deploy.update(self.clients, assembly)
            tables.put(self.clients, deployed)
            changed = template != deploy.template(self.clients.cloudformation, before.stack)
            self.workers.stop()
            self._save(
                settings=chosen,  # only now: the next update must not fail for these ones
                deployed=deployed,
                api_url=deployed.api_url(self.endpoint),
                code=keep_own_code(assembly, self.folder.path),
            )
            self._forget_parts()
        if searching and index.create(self._state.search_url, self._effects):
            self._fill_index()
        if changed:
            with step("Warming the functions"):
                warming.warm(self.clients, self.api, every=self.measured)
        with step("Starting the bulk workers again"):
            self.workers.start(self._state.wanted)
        return changed

    def _heal(self) -> Iterator[str]:
        state = self._state
        if state.search and not state.search.alive():
            self._start_search(urlsplit(state.search_url).port or 0)
            index.create(self._state.search_url, self._effects)
            yield f"The search engine had ended: started again with {self._fill_index()} documents."
        if missing := max(0, state.wanted - len(self.workers.running)):
            self.workers.start(missing)
            yield f"{missing} of {state.wanted} bulk workers had ended: started as many again."
        if state.supervisor and not state.supervisor.alive():
            self._supervise()
            yield "The supervisor of the bulk workers had ended: started again."

    def _load_records(self, own: Sequence[Attributes] | None) -> None:
        if own is None:
            if self._with_records:
                self.load_airports()
            return
        with self._steps.step("Loading the records", len(own)) as advance:
            table = self.deployed.outputs["RecordsTable"]
            records.load(self.clients.dynamodb, table, own, loaded=advance)

    def _fill_index(self) -> int:
        with self._steps.step("Filling the search index"):
            table = self.deployed.outputs["RecordsTable"]
            documents = records.scan(self.clients.dynamodb, table)
            return index.fill(self._state.search_url, self._effects, documents)

    @property
    def _effects(self) -> EffectSettings:
        task_definition = self.deployed.only("AWS::ECS::TaskDefinition")
        return index.effects_of(self.clients.ecs, task_definition)

    def _supervise(self) -> None:
        self._save(supervisor=supervisor.start(self.folder))

    def _synthesis(self, chosen: Chosen, *, search: bool) -> Synthesis:
        """Of the app with these settings, and with stand-ins for the addresses."""
        if self.with_cdk_json:
            chosen = over(chosen_in(cdk_json_of(self.project)), chosen)
        if search:
            chosen = over(chosen, {"effects": {"search_url": SEARCH_STAND_IN}})
        out = self.folder.path / "cdk.out"
        return Synthesis(settings_anywhere(chosen), out, project=self.project)

    def _addresses(self) -> dict[str, str]:
        return {AWS_STAND_IN: self.endpoint, SEARCH_STAND_IN: self._state.search_url}

    def _start_aws(self) -> None:
        folder = self.folder.path
        if self._iam:
            ministack.start(
                folder,
                lambda process, port: self._save(
                    aws=process, port=port, database=process, database_port=port
                ),
                over=ministack.ENFORCED,
            )
            return
        _, database_port = ministack.start_database(
            folder,
            lambda process, port: self._save(database=process, database_port=port),
            one_by_one=self.one_by_one,
        )
        ministack.start(
            folder,
            lambda process, port: self._save(aws=process, port=port),
            database_port=database_port,
        )

    def _start_search(self, port: int = 0) -> None:
        """port: 0 for a free one."""
        engine = EmbeddedSearch(
            self.folder.path, started=lambda process: self._save(search=process)
        ).up(port=port)
        self._save(search_url=engine.url)

    def _check_alive(self) -> None:
        for process in self._state.processes:
            if not process.alive():
                raise LocalError(
                    f"a process of the stack ended at once. Its last words ({process.log}):\n"
                    + process.tail()
                )

    def _stop(self, state: State) -> None:
        # Workers first: they end better while the AWS they talk to still answers.
        supervised = [state.supervisor] if state.supervisor else []
        processes.stop([*supervised, *state.workers], grace=ministack.STOP_GRACE_S)
        # Then the rest at once: each takes a second or two to close its connections.
        rest = (*state.local_aws, state.search)
        processes.stop([each for each in rest if each], grace=ministack.STOP_GRACE_S)
        self._forget_parts()
