"""What operators run against a deployment, on AWS or on the local stack."""
