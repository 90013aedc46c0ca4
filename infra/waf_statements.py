"""What a web ACL's rule can say of a request, in the words the rules of ``edge`` are written in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from aws_cdk import aws_wafv2 as waf

Statement = waf.CfnWebACL.StatementProperty

CONTENT_LENGTH: Final = "content-length"
_AS_IT_IS: Final = [waf.CfnWebACL.TextTransformationProperty(priority=0, type="NONE")]


def creates_a_job(paths: Sequence[str]) -> Statement:
    """Exactly ``POST`` of exactly one of the paths; what is written in any other way is not it."""
    post = exactly("POST", waf.CfnWebACL.FieldToMatchProperty(method={}))
    path = waf.CfnWebACL.FieldToMatchProperty(uri_path={})
    return all_of(post, any_of(*(exactly(one, path) for one in paths)))


def exactly(text: str, field: waf.CfnWebACL.FieldToMatchProperty) -> Statement:
    return Statement(
        byte_match_statement=waf.CfnWebACL.ByteMatchStatementProperty(
            field_to_match=field,
            positional_constraint="EXACTLY",
            search_string=text,
            text_transformations=_AS_IT_IS,
        )
    )


def labelled(label: str) -> Statement:
    return Statement(
        label_match_statement=waf.CfnWebACL.LabelMatchStatementProperty(scope="LABEL", key=label)
    )


def declares_at_most(limit: int) -> Statement:
    """Its Content-Length is there, and a plain number up to the limit. A size constraint would
    not do: it measures no body beyond what is inspected."""
    return Statement(
        regex_match_statement=waf.CfnWebACL.RegexMatchStatementProperty(
            field_to_match=waf.CfnWebACL.FieldToMatchProperty(
                single_header={"Name": CONTENT_LENGTH}
            ),
            regex_string=at_most(limit),
            text_transformations=_AS_IT_IS,
        )
    )


def at_most(limit: int) -> str:
    """A regular expression of the whole numbers from 0 to the limit, without leading zeros."""
    digits = str(limit)
    numbers = ["0"]
    numbers += ["[1-9]" + _any_digits(length) for length in range(len(digits) - 1)]
    for at, digit in enumerate(digits):
        least, most = int(at == 0), int(digit) - 1
        if least <= most:
            numbers.append(f"{digits[:at]}[{least}-{most}]" + _any_digits(len(digits) - at - 1))
    return f"^({'|'.join([*numbers, digits])})$"


def _any_digits(count: int) -> str:
    return f"[0-9]{{{count}}}" if count else ""


def all_of(*statements: Statement) -> Statement:
    return Statement(and_statement=waf.CfnWebACL.AndStatementProperty(statements=list(statements)))


def any_of(*statements: Statement) -> Statement:
    if len(statements) == 1:
        return statements[0]
    return Statement(or_statement=waf.CfnWebACL.OrStatementProperty(statements=list(statements)))


def none_of(statement: Statement) -> Statement:
    return Statement(not_statement=waf.CfnWebACL.NotStatementProperty(statement=statement))


def per_address(limit: int, window: int) -> Statement:
    """More than ``limit`` requests of one address in ``window`` seconds."""
    return Statement(
        rate_based_statement=waf.CfnWebACL.RateBasedStatementProperty(
            aggregate_key_type="IP", limit=limit, evaluation_window_sec=window
        )
    )


def per_header(name: str, limit: int, window: int) -> Statement:
    """The same of one value of a header. Requests without it are not counted."""
    key = waf.CfnWebACL.RateBasedStatementCustomKeyProperty(
        header=waf.CfnWebACL.RateLimitHeaderProperty(name=name, text_transformations=_AS_IT_IS)
    )
    return Statement(
        rate_based_statement=waf.CfnWebACL.RateBasedStatementProperty(
            aggregate_key_type="CUSTOM_KEYS",
            custom_keys=[key],
            limit=limit,
            evaluation_window_sec=window,
        )
    )
