"""The deployed code: entrypoints at the top level, and the layers they stand on."""

import gc
import os

if "AWS_LAMBDA_FUNCTION_NAME" in os.environ:
    # A start makes no garbage, and looking for some takes a quarter of a cold start.
    # The entrypoint switches it on again: cold_start.done.
    gc.disable()
    # Pydantic would read the metadata of every installed package for plugins, and there are none.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
