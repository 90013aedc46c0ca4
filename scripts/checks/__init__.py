"""The project's own small checks; ``tests/unit/test_project.py`` runs them."""
