"""The pages of docs/reference, written from the code: ``python -m scripts.reference``.

A page is a function of the code alone, the same with every Python, so a test compares the
committed pages with what the code says now.
"""
