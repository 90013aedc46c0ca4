"""What is deployed, as CDK constructs. Knows nothing of where it is deployed to."""

import os
import sys
from pathlib import Path

# The CDK's engine runs on Node. The one in this environment is a supported version; the one on
# PATH, if any, may not be.
_NODE = Path(sys.executable).with_name("node")
if _NODE.exists():
    os.environ.setdefault("JSII_NODE", str(_NODE))
