"""Fairlane's main job on real records: bulk work in every slot, small jobs that start at once.

``report`` says what was measured and what is claimed of it, ``run`` does it, ``show`` prints it.
"""
