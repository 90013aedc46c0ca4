"""The commands: one module for each, or for each group.

``lazy`` loads a command when it is called; ``app`` lists the client's own and adds those of
other installed distributions.
"""
