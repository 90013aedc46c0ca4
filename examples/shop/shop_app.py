"""The shop's deployment: jobs that find products in a search index and tell a webhook of prices."""

from fairlane.cdk import FairlaneJobs

# isort: split
# fairlane comes first: it names the Node that runs the CDK's engine.
import aws_cdk as cdk

app = cdk.App()
stack = cdk.Stack(app, "Shop")
FairlaneJobs(
    stack,
    "Jobs",
    operations="./shop_operations",
    profile="dev",
    bulk_lane={"network": "nat"},  # workers reach the index and the webhook through it
    query={"source": "search"},
    effects={
        "search_url": "https://search-products.eu-west-1.es.amazonaws.com",
        # What queries may filter by; the index takes no other field.
        "search_fields": {"category": "text", "price": "number"},
        "search_domain_arn": "arn:aws:es:eu-west-1:123456789012:domain/products",
        "webhook_url": "https://prices.shop.example/changed",
        "webhook_secret_parameter": "/shop/webhook-secret",
    },
)
app.synth()
