"""``fairlane verify waf`` against the real API's function, behind a stand-in of a web firewall that
judges by the synthesised rules."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

import pytest
from typer.testing import CliRunner

from fairlane_client.commands.app import app
from handlers.jobs.words.limits import WAF_BODY_BYTES
from scripts.ops import firewall
from scripts.ops.firewall import Who, seen_in
from tests.handlers.deployment import Deployment
from tests.infra.synthesis import settings_of, synthesise
from tests.infra.waf_model import Request, judge

Acl = dict[str, Any]
STAGE: Final = "/live"
BARE: Final = b"<html><head><title>403 Forbidden</title></head></html>"

# In the worker that synthesises anyway: each one imports the CDK first.
pytestmark = pytest.mark.xdist_group("infra")


@pytest.fixture(scope="module")
def acl() -> Acl:
    (found,) = synthesise(settings_of()).of("WAFv2::WebACL").values()
    return found


@contextmanager
def deployed_behind(stack: Deployment, acl: Acl | None) -> Iterator[str]:
    """Address of the API behind this web ACL, or none."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            parts = urlsplit(self.path)
            headers = {name.lower(): value for name, value in self.headers.items()}
            if acl is not None:
                verdict = judge(acl, Request("POST", parts.path, body, headers))
                if verdict.action == "BLOCK":
                    answer = acl["CustomResponseBodies"].get(verdict.answer)
                    text = BARE if answer is None else answer["Content"].encode()
                    kind = "text/html" if answer is None else "application/json"
                    self.answer(verdict.status, {"content-type": kind}, text)
                    return
            path = parts.path.removeprefix(STAGE)
            given = stack.call("POST", path, body.decode(), query=dict(parse_qsl(parts.query)))
            self.answer(given.status, given.headers, json.dumps(given.body).encode())

        def answer(self, status: int, headers: Any, body: bytes) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  its base's name
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}{STAGE}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def run(url: str) -> tuple[int, dict[str, dict[str, Any]]]:
    """Exit status, and what was seen by what was sent."""
    result = CliRunner().invoke(app, ["verify", "waf", "--url", url, "--token", "t", "--json"])
    # The function logs to the same place: it is in this process.
    [line] = [one for one in result.stdout.splitlines() if one.startswith('{"ok"')]
    printed = json.loads(line)
    [scenario] = printed["scenarios"]
    [part] = scenario["parts"]
    assert printed["ok"] is (result.exit_code == 0)
    return result.exit_code, {each["what"]: each for each in part["expectations"]}


def test_behind_our_own_rules_all_is_as_it_should_be(stack: Deployment, acl: Acl) -> None:
    before = stack.everything()
    with deployed_behind(stack, acl) as url:
        code, seen = run(url)
    assert [each for each in seen.values() if not each["ok"]] == []
    assert code == 0
    assert len(seen) == len([*firewall.probes()]) > 20
    assert stack.everything() == before


def with_rules_as_they_come(acl: Acl) -> Acl:
    """The managed rules without any of our exceptions, refusing as firewalls do by themselves."""
    rules = [one for one in acl["Rules"] if one["Name"] in {"Common", "KnownBadInputs"}]
    changed = json.loads(json.dumps({**acl, "Rules": rules}))
    for one in changed["Rules"]:
        one["Statement"]["ManagedRuleGroupStatement"].pop("RuleActionOverrides", None)
    return dict(changed)


def relaxed_everywhere(acl: Acl) -> Acl:
    kept = [one for one in acl["Rules"] if not one["Name"].endswith("Elsewhere")]
    return {**acl, "Rules": kept}


def none_at_all(_: Acl) -> None:
    return None


@pytest.mark.parametrize(
    ("change", "what", "saw"),
    [
        (with_rules_as_they_come, "POST /v1/jobs, 8300 bytes", "403 by somebody who did not say"),
        (with_rules_as_they_come, "POST /v1/jobs, no User-Agent", "403 by somebody"),
        (
            with_rules_as_they_come,
            f"POST /v1/jobs, a value with {firewall.FREE_TEXT[0]}",
            "403 by some",
        ),
        (relaxed_everywhere, "POST /v1/uploads, 70000 bytes", "400 by the API"),
        (none_at_all, "POST /v1/uploads, 8300 bytes", "400 by the API"),
        (none_at_all, f"POST /v1/jobs, {WAF_BODY_BYTES + 1} bytes", "413 by the API"),
    ],
)
def test_rules_that_are_not_ours_are_seen(
    stack: Deployment,
    acl: Acl,
    change: Callable[[Acl], Acl | None],
    what: str,
    saw: str,
) -> None:
    with deployed_behind(stack, change(acl)) as url:
        code, seen = run(url)
    assert code == 1
    assert not seen[what]["ok"]
    assert seen[what]["saw"].startswith(saw)


def test_nobody_there_is_a_difference_and_no_crash() -> None:
    code, seen = run("http://127.0.0.1:9/live")
    assert code == 1
    assert {each["ok"] for each in seen.values()} == {False}
    assert "no answer by nobody" in seen["POST /v1/jobs, 7900 bytes"]["saw"]


@pytest.mark.parametrize(
    ("status", "headers", "body", "who"),
    [
        (403, {"Content-Type": "text/html"}, BARE, Who.NOBODY_SAID),
        (403, {"Content-Type": "application/json"}, b'{"message":"Forbidden"}', Who.NOBODY_SAID),
        (403, {}, b'{"answered_by":"waf","detail":"d"}', Who.WAF),
        (401, {}, b'{"type":"about:blank","instance":"urn:request:1"}', Who.GATEWAY),
        (413, {"X-Request-Id": "1"}, b'{"code":"too_large"}', Who.API),
        (200, {"X-Request-Id": "1"}, b"{}", Who.API),
        (200, {}, b"[]", Who.NOBODY_SAID),
    ],
)
def test_who_answered(status: int, headers: dict[str, str], body: bytes, who: Who) -> None:
    assert seen_in(status, headers, body).who is who


@pytest.mark.parametrize(
    "arguments",
    [
        ["waf"],
        ["waf", "--url", "http://127.0.0.1:9"],
        ["waf", "--token", "t"],
        ["waf", "--url", "ftp://127.0.0.1", "--token", "t"],
        ["waf", "--all", "--url", "http://127.0.0.1:9", "--token", "t"],
        ["lane-isolation", "--url", "http://127.0.0.1:9"],
    ],
)
def test_a_url_belongs_to_waf_alone(monkeypatch: pytest.MonkeyPatch, arguments: list[str]) -> None:
    monkeypatch.delenv("FAIRLANE_TOKEN", raising=False)
    assert CliRunner().invoke(app, ["verify", *arguments]).exit_code == 2
