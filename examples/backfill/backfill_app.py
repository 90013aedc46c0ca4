"""The backfill's deployment, over a table that is there already."""

from fairlane.cdk import FairlaneJobs, RecordsSettings

# isort: split
# fairlane comes first: it names the Node that runs the CDK's engine.
import aws_cdk as cdk

app = cdk.App()
stack = cdk.Stack(app, "Backfill")
FairlaneJobs(
    stack,
    "Jobs",
    operations="backfill",  # the entry point of this package
    profile="dev",
    records=RecordsSettings(table_name="invoices"),
)
app.synth()
