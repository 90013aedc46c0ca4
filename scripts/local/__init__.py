"""Fairlane on one machine: the deployed templates on a local AWS, workers as processes.

``stack`` ties it together; ``ministack``, ``deploy``, ``worker``, ``identity`` and ``airports``
each know one part.
"""

from typing import Final

DEFAULT_NAME: Final = "default"
"""Of a local stack."""
