"""Tests of the client: pure ones, ones against a scripted server, and ones against the real one (`real`)."""
