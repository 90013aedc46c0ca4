"""What a team's own code imports of Fairlane.

``operations``  what an operation is written with, and ``testing`` what its tests use
``lease``       the subject's lease, for workers of a team's own
``cdk``         the construct that deploys Fairlane in a team's own CDK app

Everything else of the distribution may change in any release.
"""
