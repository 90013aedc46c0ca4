"""``fairlane jobs submit``: every field has an option, and ids go where there is room for them."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import Result

from fairlane_client import ApiProblem, Client, JobPreview, JobView, NewJob, NewUpload
from fairlane_client.commands import selecting
from fairlane_client.commands.jobs import app as jobs
from handlers.jobs.selection.request import JobRequest
from handlers.jobs.words.limits import MAX_BODY_BYTES
from handlers.web.routes import ROUTES
from tests.support.commands import BASE, invoke, view, words

UPLOAD = "a" * 32
TAKEN = ApiProblem(409, "subject_busy", "job j0 works on it", "subject")


@dataclass
class Api:
    """What it was sent; what it is asked to do with it."""

    jobs: list[NewJob] = field(default_factory=list)
    previews: list[NewJob] = field(default_factory=list)
    files: list[tuple[NewUpload, bytes]] = field(default_factory=list)
    conflicts: list[str | None] = field(default_factory=list)
    answer: Callable[[NewJob], JobView] = lambda _: view()
    look: Callable[[NewJob], None] = lambda _: None


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Api:
    api = Api()

    def submit(_: Client, job: NewJob, *, on_conflict: str | None, **__: object) -> JobView:
        api.jobs.append(job)
        api.conflicts.append(on_conflict)
        return api.answer(job)

    def preview(_: Client, job: NewJob) -> JobPreview:
        api.previews.append(job)
        api.look(job)
        seen: dict[str, Any] = {"valid": True, "count": None, "duplicates": 0, "sample": []}
        return JobPreview.model_validate({"lane": "bulk", "count_is_exact": False, **seen})

    def upload(
        _: Client, path: Path, new: NewUpload, *, sent: Callable[[int], None] = lambda _: None
    ) -> str:
        api.files.append((new, path.read_bytes()))
        sent(path.stat().st_size)
        return UPLOAD

    for call in (submit, preview, upload):
        monkeypatch.setattr(Client, call.__name__, call)
    return api


# --- what can be asked for --------------------------------------------------------------------

OPTIONS = {"params": "--param", "ids": "--id", "labels": "--label", "Idempotency-Key": None}
"""Fields whose option is called otherwise."""


def options_of(verb: str) -> set[str]:
    command = get_command(jobs).commands[verb]  # type: ignore[attr-defined]  # typer's group
    return {name for each in command.params for name in each.opts}


def test_every_field_and_parameter_of_the_request_has_an_option() -> None:
    [route] = [route for route in ROUTES if route.name == "create_job"]
    asked = {*JobRequest.model_fields, *(parameter.name for parameter in route.parameters)}
    options = options_of("submit")
    wanted = {OPTIONS.get(name) or f"--{name.lower().replace('_', '-')}" for name in asked}
    assert wanted <= options
    assert set(NewJob.model_fields) == set(JobRequest.model_fields)


def test_what_is_asked_for_arrives(api: Api) -> None:
    result = invoke(
        *BASE,
        *("--upload-id", UPLOAD),
        *("--tolerated-failure-percent", "5"),
        *("--label", "team=a=b", "--label", "run=7"),
        *("--on-conflict", "return_existing"),
    )
    assert result.exit_code == 0, result.output
    [job] = api.jobs
    assert (job.upload_id, job.tolerated_failure_percent) == (UPLOAD, 5)
    assert (job.labels, api.conflicts) == ({"team": "a=b", "run": "7"}, ["return_existing"])


def test_what_is_not_asked_for_is_left_to_the_api(api: Api) -> None:
    invoke(*BASE, "--id", "1")
    assert set(json.loads(api.jobs[0].json_body())) == {"operation", "subject", "params", "ids"}
    assert api.conflicts == [None]


def test_a_job_that_was_there_is_called_so(api: Api) -> None:
    api.answer = lambda _: view(id="j0", existing=True)
    result = invoke(*BASE, "--id", "1", "--on-conflict", "return_existing")
    assert json.loads(result.stdout)["existing"] is True
    assert "nothing was created: job j0 holds the subject" in result.stderr


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--label", "novalue"),
        ("--column", "sku"),
        ("--on-conflict", "wait"),
        ("--tolerated-failure-percent", "few"),
        ("--id", ""),
        ("--id", "a\x07"),
        ("--idempotency-key", "\u20ac"),
        ("--idempotency-key", "a\nb"),
        ("--token", "t\n"),
        ("--param", "add=NaN"),
        ("--param", "add=1e99999999999999999999"),
        ("--params", '{"add": -Infinity}'),
        ("--query", '{"all": [NaN]}'),
        ("--param", f"add={'[' * 100_000}"),
    ],
)
def test_what_cannot_be_is_refused_by_its_option(api: Api, option: str, value: str) -> None:
    result = invoke(*BASE, option, value)
    assert result.exit_code == 2
    assert option in result.stderr
    assert api.jobs == []


def test_text_without_its_quotes_is_told_how_it_is_written(api: Api) -> None:
    result = invoke(*BASE, "--param", "field=elevation")
    assert (result.exit_code, api.jobs) == (2, [])
    assert """--param 'field="elevation"'""" in " ".join(result.stderr.replace("│", " ").split())


def test_a_label_has_one_value(api: Api) -> None:
    result = invoke(*BASE, "--label", "team=a", "--label", "team=b")
    assert (result.exit_code, api.jobs) == (2, [])
    assert "--label team=" in result.stderr


# --- ids that a request has room for, and others ----------------------------------------------


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request has room for three ids."""
    monkeypatch.setattr(selecting, "INLINE_IDS", 3)


def submit_file(path: Path, content: str | bytes, *more: str) -> Result:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return invoke(*BASE, "--ids-file", str(path), *more)


@pytest.mark.usefixtures("few")
def test_as_many_ids_as_have_room_go_into_the_request(api: Api, tmp_path: Path) -> None:
    result = submit_file(tmp_path / "ids", "2\n3\n", "--id", "1")
    assert result.exit_code == 0
    assert ([job.ids for job in api.jobs], api.previews, api.files) == ([["1", "2", "3"]], [], [])


@pytest.mark.usefixtures("few")
def test_one_more_goes_into_a_file_that_is_uploaded_and_said_so(api: Api, tmp_path: Path) -> None:
    result = submit_file(tmp_path / "ids", "007\n\nÄ b\n9\n", "--id", "1")
    assert (result.exit_code, json.loads(result.stdout)["id"]) == (0, "j1")
    [(new, content)] = api.files
    assert [json.loads(line) for line in content.splitlines()] == ["1", "007", "Ä b", "9"]
    assert (new.format, new.gzip) == ("jsonl", False)
    [job] = api.jobs
    assert (job.ids, job.upload_id) == (None, UPLOAD)
    for part in (f"--ids-file {tmp_path / 'ids'}", "room for 3 ids", f"--upload-id {UPLOAD}"):
        assert part in result.stderr


@pytest.mark.usefixtures("few")
def test_a_file_with_a_format_is_uploaded_as_it_is(api: Api, tmp_path: Path) -> None:
    """However small: what counts is what is in it."""
    content = gzip.compress(b"n,sku\n" + b"1,a\n" * 4)
    result = submit_file(tmp_path / "ids.csv.gz", content, "--column", "sku")
    assert result.exit_code == 0
    assert api.files == [(NewUpload(format="csv", column="sku", gzip=True), content)]


@pytest.mark.usefixtures("few")
def test_a_file_with_a_format_is_written_anew_when_it_does_not_hold_all_ids(
    api: Api, tmp_path: Path
) -> None:
    submit_file(tmp_path / "ids.csv", "sku\na\nb\nc\n", "--column", "sku", "--id", "1")
    assert api.files == [(NewUpload(format="jsonl"), b'"1"\n"a"\n"b"\n"c"\n')]


@pytest.mark.usefixtures("few")
def test_ids_on_the_command_line_can_be_too_many_as_well(api: Api) -> None:
    result = invoke(*BASE, *(part for number in range(4) for part in ("--id", str(number))))
    assert result.exit_code == 0
    assert api.files[0][1] == b'"0"\n"1"\n"2"\n"3"\n'


def body_of(ids: int, params: str) -> NewJob:
    job = {"operation": "adjust_number", "subject": "products", "params": json.loads(params)}
    return NewJob(**job, ids=[f"{number:0250}" for number in range(ids)])


@pytest.mark.parametrize(("spare", "uploads"), [(0, 0), (-1, 1)])
def test_a_body_is_filled_to_its_last_byte(
    api: Api, tmp_path: Path, spare: int, uploads: int
) -> None:
    """Everything in it counts, not only the ids."""
    count = 7800
    room = MAX_BODY_BYTES - len(body_of(count, '{"note": ""}').json_body())
    params = json.dumps({"note": "x" * (room - spare)})
    ids = body_of(count, params).ids
    assert ids is not None
    result = submit_file(tmp_path / "ids", "\n".join(ids), "--params", params)
    assert result.exit_code == 0, result.output
    assert len(api.files) == uploads
    assert (
        len(api.jobs[0].json_body()) == MAX_BODY_BYTES if not uploads else api.jobs[0].ids is None
    )


def problem(field_: str | None, status: int = 413) -> ApiProblem:
    return ApiProblem(status, "too_large", "at most 2 ids fit in a request", field_)


@pytest.mark.parametrize("field_", ["ids", "body", None])
def test_a_deployment_with_less_room_gets_a_file(
    api: Api, tmp_path: Path, field_: str | None
) -> None:
    def refuse_many(job: NewJob) -> JobView:
        if len(job.ids or ()) > 2:
            raise problem(field_)
        return view()

    api.answer = refuse_many
    result = submit_file(tmp_path / "ids", "1\n2\n3")
    assert result.exit_code == 0
    assert [job.upload_id for job in api.jobs] == [None, UPLOAD]
    assert "at most 2 ids fit in a request" in result.stderr


@pytest.mark.parametrize("refusal", [problem("params"), problem("ids", 400), TAKEN])
def test_nothing_is_uploaded_for_what_is_wrong_otherwise(
    api: Api, tmp_path: Path, refusal: ApiProblem
) -> None:
    def refuse(_: Any) -> JobView:
        raise refusal

    api.answer = refuse
    result = submit_file(tmp_path / "ids", "1\n2\n3")
    assert result.exit_code == 1
    assert str(refusal.field) in result.stdout
    assert api.files == []


@pytest.mark.usefixtures("few")
def test_a_request_is_looked_at_before_its_file_is_sent(api: Api, tmp_path: Path) -> None:
    def refuse(_: Any) -> None:
        raise ApiProblem(400, "bad_request", "is not a number", "params.add")

    api.look = refuse
    result = submit_file(tmp_path / "ids", "1\n2\n3\n4")
    assert (result.exit_code, json.loads(result.stdout)["error"]["field"]) == (1, "params.add")
    assert [job.ids for job in api.previews] == [["1"]]
    assert (api.files, api.jobs) == ([], [])


@pytest.mark.usefixtures("few")
def test_what_was_uploaded_for_a_refused_job_can_be_used(api: Api, tmp_path: Path) -> None:
    def refuse(_: Any) -> JobView:
        raise TAKEN

    api.answer = refuse
    result = submit_file(tmp_path / "ids", "1\n2\n3\n4")
    assert result.exit_code == 1
    assert f"use --upload-id {UPLOAD} to send the same ids again" in result.stderr


@pytest.mark.usefixtures("few")
def test_looking_only_creates_no_job(api: Api, tmp_path: Path) -> None:
    result = submit_file(tmp_path / "ids", "1\n2\n3\n4", "--validate-only")
    assert result.exit_code == 0
    assert [job.upload_id for job in api.previews] == [None, UPLOAD]
    assert api.jobs == []


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("ids", "1\n2\n3\n\n4\na\x07b\n", "line 6: the id must not hold control characters"),
        ("ids.jsonl", '"1"\n2\n', "line 2: the id is the number 2"),
        ("ids", b"\xff\n", "utf-8"),
    ],
)
def test_a_file_with_a_line_that_is_no_id_is_not_sent(
    api: Api, tmp_path: Path, name: str, content: str | bytes, said: str
) -> None:
    result = submit_file(tmp_path / name, content)
    assert result.exit_code == 2
    assert "--ids-file" in words(result)
    assert said in words(result)
    assert (api.files, api.jobs) == ([], [])


@pytest.fixture
def pipe() -> Iterator[Callable[[bytes], str]]:
    """The name that a shell gives to ``<(...)``, which prints this."""
    opened: list[int] = []

    def named(content: bytes) -> str:
        reading, writing = os.pipe()
        os.write(writing, content)
        os.close(writing)
        opened.append(reading)
        return f"/dev/fd/{reading}"

    yield named
    for each in opened:
        os.close(each)


def test_ids_come_from_another_program(api: Api, pipe: Callable[[bytes], str]) -> None:
    result = invoke(*BASE, "--ids-file", pipe(b"EDDF\nEDDM\n"))
    assert result.exit_code == 0, result.output
    assert [job.ids for job in api.jobs] == [["EDDF", "EDDM"]]


@pytest.mark.usefixtures("few")
def test_those_of_another_program_are_read_once_and_uploaded(
    api: Api, pipe: Callable[[bytes], str]
) -> None:
    """The preview takes the first of them, the upload all."""
    result = invoke(*BASE, "--ids-file", pipe(b"1\n2\n3\n4\n"))
    assert result.exit_code == 0, result.output
    assert [job.ids for job in api.previews] == [["1"]]
    assert api.files[0][1] == b'"1"\n"2"\n"3"\n"4"\n'


@pytest.mark.parametrize(
    ("name", "content", "more"),
    [("ids", "", ()), ("ids", "\n\n", ()), ("i.csv", "sku\n", ("--column", "sku"))],
)
def test_a_file_without_ids_is_said_to_have_none(
    api: Api, tmp_path: Path, name: str, content: str, more: tuple[str, ...]
) -> None:
    result = submit_file(tmp_path / name, content, *more)
    assert (result.exit_code, api.jobs) == (2, [])
    assert f"--ids-file {tmp_path / name} holds no ids" in words(result)
    assert submit_file(tmp_path / name, content, *more, "--id", "1").exit_code == 0


@pytest.mark.parametrize("given", ["/dev/null", "-"])
def test_nothing_to_read_is_no_ids(api: Api, given: str) -> None:
    result = invoke(*BASE, "--ids-file", given, typed="")
    assert (result.exit_code, api.jobs) == (2, [])
    assert f"--ids-file {given} holds no ids" in words(result)


def test_a_folder_is_called_one(api: Api, tmp_path: Path) -> None:
    result = invoke(*BASE, "--ids-file", str(tmp_path))
    assert (result.exit_code, api.jobs) == (2, [])
    assert f"--ids-file {tmp_path} is a folder" in words(result)


# --- lookup tables ----------------------------------------------------------------------------


def test_a_lookup_table_is_uploaded_and_named(api: Api, tmp_path: Path) -> None:
    plain, packed = tmp_path / "rates.csv", tmp_path / "names.jsonl.gz"
    plain.write_bytes(b"currency,rate\nEUR,1\n")
    packed.write_bytes(gzip.compress(b'{"id": "a"}\n'))
    files = ("--table", f"rates={plain}", "--table", f"names={packed}")
    keys = ("--key", "rates=currency", "--key", "names=id")
    result = invoke(*BASE, "--id", "1", "--param", "add=1", *files, *keys)
    assert result.exit_code == 0, result.output
    [job] = api.jobs
    named = {"upload_id": UPLOAD}
    assert job.params == {"add": 1, "rates": named, "names": named}
    assert [form for form, _ in api.files] == [
        NewUpload(format="csv", column="currency", gzip=False),
        NewUpload(format="jsonl", column="id", gzip=True),
    ]
    assert f'--param \'rates={{"upload_id": "{UPLOAD}"}}\'' in words(result)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (("--table", "rates=rates.csv"), "only one of --table and --key"),
        (("--key", "rates=k"), "only one of --table and --key"),
        (("--table", "rates=rates.txt", "--key", "rates=k"), "a table is one of"),
        (("--table", "rates=none.csv", "--key", "rates=k"), "no such file"),
        (("--table", "rates", "--key", "rates=k"), "is not NAME=VALUE"),
        (("--table", "rates=rates.csv", "--key", "rates="), "is not NAME=VALUE"),
        (("--table", "rates=rates.csv", "--table", "rates=b.csv"), "--table rates= is given twice"),
        (("--key", "rates=k", "--key", "rates=l"), "--key rates= is given twice"),
        (
            ("--table", "rates=rates.csv", "--key", "rates=k", "--param", "rates=1"),
            "'rates' is a --table, and has another value too",
        ),
    ],
)
def test_a_table_that_cannot_be_sent_is_refused_before_anything_is(
    api: Api, given: tuple[str, ...], why: str
) -> None:
    result = invoke(*BASE, "--id", "1", *given)
    assert result.exit_code == 2
    assert why in words(result)
    assert not api.files
    assert not api.jobs


def test_a_table_is_a_file(api: Api, tmp_path: Path) -> None:
    folder, pipe = tmp_path / "folder.csv", tmp_path / "pipe.csv"
    folder.mkdir()
    os.mkfifo(pipe)
    for path, why in ((folder, "is a folder"), (pipe, "is a pipe or a device")):
        result = invoke(*BASE, "--id", "1", "--table", f"rates={path}", "--key", "rates=k")
        assert (result.exit_code, api.files, api.jobs) == (2, [], [])
        assert f"--table {path} {why}" in words(result)
