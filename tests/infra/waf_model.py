"""What a web ACL does with a request, worked out from its synthesised rules.

AWS's managed rules are not public. Those that matter here are modelled after their documented
descriptions; what they are said to inspect, which labels they leave, and that body rules look at
the inspected part only and let the rest be (oversize handling CONTINUE) is taken from there too. A
statement, field or transformation this does not know is an error, never a guess.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final
from urllib.parse import unquote_to_bytes

KB: Final = 1024
CORE: Final = "awswaf:managed:aws:core-rule-set:"
BAD: Final = "awswaf:managed:aws:known-bad-inputs:"
REMEMBERED: Final = 128
"""Inspected parts of bodies, of up to 64 KB, whose answer is kept, for each managed rule."""


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Names in lower case."""
    rate: int = 1
    """Requests of its address in the window."""
    token_rate: int = 1
    """Requests with its token in the window."""


@dataclass(frozen=True)
class Verdict:
    action: str
    """ALLOW or BLOCK."""
    rule: str = ""
    status: int = 200
    answer: str = ""
    """Key of the custom response body."""
    labels: frozenset[str] = frozenset()
    counted: tuple[str, ...] = ()


@dataclass(frozen=True)
class ManagedRule:
    name: str
    label: str
    matches: Callable[[Request, bytes], bool]
    """Of the request and the inspected part of its body."""


def _in_body(pattern: str) -> Callable[[Request, bytes], bool]:
    compiled = re.compile(pattern.encode(), re.IGNORECASE)

    # The same few parts of bodies come to dozens of web ACLs.
    @lru_cache(REMEMBERED)
    def found(inspected: bytes) -> bool:
        return compiled.search(inspected) is not None

    return lambda _, inspected: found(inspected)


MANAGED: Final[Mapping[str, Sequence[ManagedRule]]] = {
    "AWSManagedRulesAmazonIpReputationList": (),
    "AWSManagedRulesKnownBadInputsRuleSet": (
        ManagedRule("Log4JRCE_BODY", f"{BAD}Log4JRCE_Body", _in_body(r"\$\{jndi:")),
    ),
    "AWSManagedRulesCommonRuleSet": (
        ManagedRule(
            "NoUserAgent_HEADER",
            f"{CORE}NoUserAgent_Header",
            lambda request, _: not request.headers.get("user-agent"),
        ),
        ManagedRule(
            "SizeRestrictions_BODY",
            f"{CORE}SizeRestrictions_Body",
            lambda request, _: len(request.body) > 8 * KB,
        ),
        ManagedRule(
            "EC2MetaDataSSRF_BODY",
            f"{CORE}EC2MetaDataSSRF_Body",
            _in_body(r"169\.254\.169\.254"),
        ),
        ManagedRule("GenericLFI_BODY", f"{CORE}GenericLFI_Body", _in_body(r"\.\./")),
        ManagedRule(
            "GenericRFI_BODY",
            f"{CORE}GenericRFI_Body",
            _in_body(r"(https?|ftps?|file)://\d{1,3}(\.\d{1,3}){3}"),
        ),
        ManagedRule(
            "CrossSiteScripting_BODY",
            f"{CORE}CrossSiteScripting_Body",
            _in_body(r"<script|\son\w+\s*=|javascript:"),
        ),
        ManagedRule(
            "CrossSiteScripting_URIPATH",
            f"{CORE}CrossSiteScripting_URIPath",
            lambda request, _: "<script" in request.path,
        ),
    ),
}


def judge(acl: Mapping[str, Any], request: Request) -> Verdict:
    """acl: properties of an ``AWS::WAFv2::WebACL``."""
    return _Judgement(acl, request).run()


class _Judgement:
    def __init__(self, acl: Mapping[str, Any], request: Request) -> None:
        self.acl = acl
        self.request = request
        self.labels: set[str] = set()
        self.counted: list[str] = []
        limit = acl["AssociationConfig"]["RequestBody"]["API_GATEWAY"]
        self.limit = int(limit["DefaultSizeInspectionLimit"].removeprefix("KB_")) * KB

    def run(self) -> Verdict:
        for rule in sorted(self.acl["Rules"], key=lambda rule: int(rule["Priority"])):
            if found := self._rule(rule):
                return found
        assert [*self.acl["DefaultAction"]] == ["Allow"]
        return self._verdict("ALLOW", "")

    def _verdict(self, action: str, rule: str, block: Mapping[str, Any] | None = None) -> Verdict:
        custom = (block or {}).get("CustomResponse", {})
        status = 200 if action == "ALLOW" else int(custom.get("ResponseCode", 403))
        answer = custom.get("CustomResponseBodyKey", "")
        assert not answer or answer in self.acl["CustomResponseBodies"]
        return Verdict(action, rule, status, answer, frozenset(self.labels), tuple(self.counted))

    def _rule(self, rule: Mapping[str, Any]) -> Verdict | None:
        statement = rule["Statement"]
        if group := statement.get("ManagedRuleGroupStatement"):
            return self._group(rule, group)
        if not self._holds(statement):
            return None
        self.labels |= {label["Name"] for label in rule.get("RuleLabels", [])}
        return self._act(rule["Name"], rule["Action"])

    def _act(self, name: str, action: Mapping[str, Any]) -> Verdict | None:
        match [*action]:
            case ["Count"]:
                self.counted.append(name)
                return None
            case ["Block"]:
                return self._verdict("BLOCK", name, action["Block"])
            case ["Allow"]:
                return self._verdict("ALLOW", name)
        raise AssertionError(f"unknown action {action}")

    def _group(self, rule: Mapping[str, Any], group: Mapping[str, Any]) -> Verdict | None:
        assert group["VendorName"] == "AWS"
        assert "ExcludedRules" not in group
        scope = group.get("ScopeDownStatement")
        if scope is not None and not self._holds(scope):
            return None
        known = MANAGED[group["Name"]]
        overrides = {
            one["Name"]: one["ActionToUse"] for one in group.get("RuleActionOverrides", [])
        }
        unknown = overrides.keys() - {one.name for one in known}
        assert not unknown, f"overrides of unknown rules: {unknown}"
        only_counted = [*rule["OverrideAction"]] == ["Count"]
        inspected = self.request.body[: self.limit]
        for managed in known:
            if not managed.matches(self.request, inspected):
                continue
            self.labels.add(managed.label)
            action = overrides.get(managed.name, {"Block": {}})
            if found := self._act(managed.name, {"Count": {}} if only_counted else action):
                return found
        return None

    # --- statements ---------------------------------------------------------------------------

    def _rate(self, content: Mapping[str, Any]) -> int:
        """The requests that share the statement's key with this one; none without the key."""
        if content["AggregateKeyType"] == "IP":
            return self.request.rate
        assert content["AggregateKeyType"] == "CUSTOM_KEYS"
        [key] = content["CustomKeys"]
        assert key["Header"]["Name"] == "authorization"
        return self.request.token_rate if "authorization" in self.request.headers else 0

    def _holds(self, statement: Mapping[str, Any]) -> bool:
        [(kind, content)] = statement.items()
        match kind:
            case "AndStatement":
                return all(self._holds(part) for part in content["Statements"])
            case "OrStatement":
                return any(self._holds(part) for part in content["Statements"])
            case "NotStatement":
                return not self._holds(content["Statement"])
            case "LabelMatchStatement":
                assert content["Scope"] == "LABEL"
                return str(content["Key"]) in self.labels
            case "RateBasedStatement":
                return self._rate(content) > int(content["Limit"])
            case "ByteMatchStatement":
                sought = content["SearchString"].encode()
                return self._matches(
                    content, lambda found: _placed(found, sought, content["PositionalConstraint"])
                )
            case "RegexMatchStatement":
                regex = re.compile(content["RegexString"].encode())
                return self._matches(content, lambda found: regex.search(found) is not None)
            case "SizeConstraintStatement":
                compare = _COMPARED[content["ComparisonOperator"]]
                size = int(content["Size"])
                return self._matches(content, lambda found: compare(len(found), size))
        raise AssertionError(f"unknown statement {kind}")

    def _matches(self, content: Mapping[str, Any], holds: Callable[[bytes], bool]) -> bool:
        [(kind, how)] = content["FieldToMatch"].items()
        if kind == "Body" and len(self.request.body) > self.limit:
            match how["OversizeHandling"]:
                case "MATCH":
                    return True
                case "NO_MATCH":
                    return False
        found = self._field(kind, how)
        if found is None:
            return False
        for step in sorted(content["TextTransformations"], key=lambda one: int(one["Priority"])):
            found = _TRANSFORMED[step["Type"]](found)
        return holds(found)

    def _field(self, kind: str, how: Mapping[str, Any]) -> bytes | None:
        """None: the request has no such part, and nothing can match it."""
        match kind:
            case "Method":
                return self.request.method.encode()
            case "UriPath":
                return self.request.path.encode()
            case "Body":
                return self.request.body[: self.limit]
            case "SingleHeader":
                value = self.request.headers.get(how["Name"].lower())
                return None if value is None else value.encode()
        raise AssertionError(f"unknown field {kind}")


def _placed(found: bytes, sought: bytes, where: str) -> bool:
    match where:
        case "EXACTLY":
            return found == sought
        case "STARTS_WITH":
            return found.startswith(sought)
        case "ENDS_WITH":
            return found.endswith(sought)
        case "CONTAINS":
            return sought in found
    raise AssertionError(f"unknown constraint {where}")


_COMPARED: Final[Mapping[str, Callable[[int, int], bool]]] = {
    "GT": int.__gt__,
    "GE": int.__ge__,
    "LT": int.__lt__,
    "LE": int.__le__,
}
_TRANSFORMED: Final[Mapping[str, Callable[[bytes], bytes]]] = {
    "NONE": bytes,
    "LOWERCASE": bytes.lower,
    "URL_DECODE": unquote_to_bytes,
}
