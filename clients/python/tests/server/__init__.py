"""Tests on a real server, which `tests/it/clients` starts and names in the environment."""
