"""Checks of a deployed or local stack, each with what is wrong in words.

``jobs`` looks at the control table and the queues, ``stack`` at what AWS says of the stack's
resources, ``grants`` at the rights of its functions, ``local`` at the processes of a local stack.
"""
