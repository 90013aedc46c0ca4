"""``fairlane aws-check``: what of Fairlane's promises holds on a deployed stack.

``jobs`` creates harmless jobs through the API and removes what they leave, ``readings`` asks AWS
what no local stack can show, ``run`` does both in order, ``caller`` says who calls.
"""
