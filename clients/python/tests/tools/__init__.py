"""Tests that need the tools of tests/setup/python-client: type checkers, and what builds the wheel."""
