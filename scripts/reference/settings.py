"""docs/reference/settings.md: what a deployment can choose, from the models that check it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from handlers.jobs.words.timing import LaneTiming
from handlers.settings import AuthSettings
from infra.parts import OwnNetwork, RepositorySettings
from infra.profiles import defaults_of
from infra.settings import DeploySettings

from .docstrings import table, under
from .kinds import kind
from .words import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pydantic.fields import FieldInfo

OPTIONAL: Final[Mapping[str, type[BaseModel]]] = {
    "auth": AuthSettings,
    "vpc": OwnNetwork,
    "bulk_lane.repository": RepositorySettings,
}
"""Groups that are not there unless they are set."""
YOURS: Final = "that of your machine"
HEADS: Final = ("setting", "value", "default", "in `dev`", "what it does")
ABOUT: Final = """\
# Settings

`cdk.json` has a deployment's settings under `context.fairlane`, and `FairlaneJobs` takes them as
props by the same names. A deployment names only what differs from the defaults here, at any
depth. A misspelt setting is refused, and so are two that contradict each other. The profile `dev`
has other defaults where its column has a value. [Deploying](../deploy.md#settings) says which
ones most deployments need.
"""


def page() -> str:
    groups = [ABOUT, *(_section(path, model) for path, model in _groups(DeploySettings))]
    return "\n".join(groups)


def names() -> list[str]:
    """Every setting by its path, such as ``timing.small.heartbeat``."""
    return [
        f"{path}.{name}".lstrip(".")
        for path, model in _groups(DeploySettings)
        for name, _ in _leaves(path, model)
    ]


# --- parts ------------------------------------------------------------------------------------


def _groups(model: type[BaseModel], path: str = "") -> Iterator[tuple[str, type[BaseModel]]]:
    yield path, model
    for name in model.model_fields:
        full = f"{path}.{name}".lstrip(".")
        if (inner := _model(full, model.model_fields[name])) is not None:
            yield from _groups(inner, full)


def _model(path: str, field: FieldInfo) -> type[BaseModel] | None:
    if path in OPTIONAL:
        return OPTIONAL[path]
    found = field.annotation
    return found if isinstance(found, type) and issubclass(found, BaseModel) else None


def _leaves(path: str, model: type[BaseModel]) -> Iterator[tuple[str, FieldInfo]]:
    for name, field in model.model_fields.items():
        if _model(f"{path}.{name}".lstrip("."), field) is None:
            yield name, field


def _section(path: str, model: type[BaseModel]) -> str:
    schemas = model.model_json_schema()
    rows = [
        (
            f"`{name}`",
            kind(schemas["properties"][name], schemas),
            _default(path, name, field),
            _in_dev(path, name),
            _text(path, name, model),
        )
        for name, field in _leaves(path, model)
    ]
    head = f"## {path}\n\n" if path else "## At the top\n\n"
    lead = f"{SETTINGS[path]}\n\n" if path in SETTINGS else ""
    return head + lead + table(HEADS, rows)


def _text(path: str, name: str, model: type[BaseModel]) -> str:
    """What ``words`` says of the field, or else what stands under it. Raises KeyError for a field
    without either, or with half a sentence."""
    full = f"{path}.{name}".lstrip(".")
    own = under(model).get(name)
    if own is not None and not own.endswith("; or") and full not in SETTINGS:
        return own
    return SETTINGS[f"timing.*.{name}" if model is LaneTiming else full]


def _default(path: str, name: str, field: FieldInfo) -> str:
    value = _at(DeploySettings.model_fields, f"{path}.{name}".lstrip("."))
    if value is PydanticUndefined:
        value = field.get_default(call_default_factory=True)
    return _shown(value)


def _at(fields: Mapping[str, FieldInfo], path: str) -> Any:
    """The default of a setting within its group's own default, such as the timing of production."""
    first, *rest = path.split(".")
    value = fields[first].get_default(call_default_factory=True)
    for part in rest:
        if not isinstance(value, BaseModel):
            return PydanticUndefined
        value = getattr(value, part)
    return value


def _in_dev(path: str, name: str) -> str:
    found: Any = {**defaults_of({"profile": "dev"}), "architecture": YOURS}
    for part in f"{path}.{name}".lstrip(".").split("."):
        if not isinstance(found, dict) or part not in found:
            return ""
        found = found[part]
    return _shown(found)


def _shown(value: object) -> str:
    match value:
        case None | ():
            return "none"
        case {} if not value:
            return "none"
        case str() if value == YOURS:
            return value
        case _ if value is PydanticUndefined:
            return "**required**"
        case bool():
            return f"`{json.dumps(value)}`"
        case int() | float():
            return f"{value:,.12g}" if isinstance(value, float) else f"{value:,}"
        case tuple():
            return ", ".join(f"`{each}`" for each in value)
        case _:
            return f"`{value}`"
