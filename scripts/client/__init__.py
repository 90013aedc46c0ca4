"""A typed client of Fairlane's API: jobs in, jobs and problems out.

::

    client = Client("https://abc.execute-api.eu-west-1.amazonaws.com/v1-stage", token)
    job = client.submit(NewJob(operation="set_fields", subject="products", ids=["1"], params=...))
    job = client.wait(job.id)

Whatever the API refuses is an ``ApiProblem``; nobody answering is ``Unreachable``.
"""

from .client import Client
from .downloads import fetch
from .models import ItemView, JobPage, JobPreview, JobView, LaneView, NewJob, ReportView
from .problems import ApiProblem, ClientError, NotDownloaded, StillRunning, Unreachable
from .uploads import NewUpload

__all__ = [
    "ApiProblem",
    "Client",
    "ClientError",
    "ItemView",
    "JobPage",
    "JobPreview",
    "JobView",
    "LaneView",
    "NewJob",
    "NewUpload",
    "NotDownloaded",
    "ReportView",
    "StillRunning",
    "Unreachable",
    "fetch",
]
