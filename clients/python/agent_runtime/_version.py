# Written by clients/generate from the API description.
"""The version of the client: that of the server whose API description it was made from."""

__version__ = "0.2.0"
