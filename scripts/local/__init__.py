"""Fairlane on one machine: the deployed templates on a local AWS, workers as processes.

``stack`` ties it together; ``ministack``, ``deploy``, ``synthesis``, ``worker``, ``supervisor``,
``records``, ``index``, ``identity`` and ``airports`` each know one part.
"""

from typing import Final

DEFAULT_NAME: Final = "default"
"""Of a local stack."""
