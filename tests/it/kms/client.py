"""The vendor's own client, driven by lines of JSON: one order in, one answer out.

Arguments: host and port of the service, the service account's file. What the client makes of an
answer is told field by field; a checksum is computed here, apart from the code under test.
"""

import base64
import json
import os
import sys

host, account = sys.argv[1:]
# Read when google.auth is imported.
os.environ["GCE_METADATA_HOST"] = host
os.environ["NO_GCE_CHECK"] = "true"

from google.api_core import exceptions
from google.auth import compute_engine
from google.auth.transport.requests import Request
from google.cloud import kms_v1
from google.cloud.kms_v1.services.key_management_service.transports import (
    KeyManagementServiceRestTransport,
)
from google.oauth2 import credentials, service_account
from google.rpc import code_pb2

SCOPE = "https://www.googleapis.com/auth/cloudkms"


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def credentials_of(source):
    if source == "service_account":
        return service_account.Credentials.from_service_account_file(account, scopes=[SCOPE])
    if source == "metadata":
        return compute_engine.Credentials(scopes=[SCOPE])
    return credentials.Credentials(
        None,
        refresh_token="refresh/token",
        client_id="client",
        client_secret="client & secret",
        token_uri=f"http://{host}/token",
    )


def client(source):
    given = credentials_of(source)
    if source == "service_account":
        # The client would sign for itself instead of asking for a token.
        given.refresh(Request())
        given = credentials.Credentials(given.token)
    transport = KeyManagementServiceRestTransport(
        host=host, url_scheme="http", credentials=given
    )
    return kms_v1.KeyManagementServiceClient(transport=transport)


def encrypt(kms, order):
    plaintext, aad = (base64.b64decode(order[name]) for name in ("plaintext", "aad"))
    answer = kms.encrypt(
        request={
            "name": order["name"],
            "plaintext": plaintext,
            "plaintext_crc32c": crc32c(plaintext) ^ order.get("spoil", 0),
            "additional_authenticated_data": aad,
            "additional_authenticated_data_crc32c": crc32c(aad),
        },
        retry=None,
        timeout=20,
    )
    return {
        "name": answer.name,
        "ciphertext": base64.b64encode(answer.ciphertext).decode(),
        "checksumIsRight": answer.ciphertext_crc32c == crc32c(answer.ciphertext),
        "verifiedPlaintext": answer.verified_plaintext_crc32c,
        "verifiedAad": answer.verified_additional_authenticated_data_crc32c,
        "protectionLevel": kms_v1.ProtectionLevel(answer.protection_level).name,
    }


def decrypt(kms, order):
    ciphertext, aad = (base64.b64decode(order[name]) for name in ("ciphertext", "aad"))
    answer = kms.decrypt(
        request={
            "name": order["name"],
            "ciphertext": ciphertext,
            "ciphertext_crc32c": crc32c(ciphertext) ^ order.get("spoil", 0),
            "additional_authenticated_data": aad,
            "additional_authenticated_data_crc32c": crc32c(aad),
        },
        retry=None,
        timeout=20,
    )
    return {
        "plaintext": base64.b64encode(answer.plaintext).decode(),
        "checksumIsRight": answer.plaintext_crc32c == crc32c(answer.plaintext),
        "usedPrimary": answer.used_primary,
        "protectionLevel": kms_v1.ProtectionLevel(answer.protection_level).name,
    }


def raised(error):
    """The exception by its status name, where the vendor pairs that with the HTTP status."""
    status = error.response.json()["error"]["status"]
    named = exceptions.from_grpc_status(code_pb2.Code.Value(status), error.message)
    if not isinstance(named, type(error)) or named.code != error.response.status_code:
        raise ValueError(f"HTTP {error.response.status_code} does not go with {status}")
    return {"exception": type(named).__name__, "message": error.message}


DEEDS = {"encrypt": encrypt, "decrypt": decrypt}
known = {}
for line in sys.stdin:
    order = json.loads(line)
    source = order.get("credentials", "service_account")
    try:
        if source not in known:
            known[source] = client(source)
        answer = DEEDS[order["deed"]](known[source], order)
    except exceptions.GoogleAPICallError as error:
        answer = raised(error)
    print(json.dumps(answer), flush=True)
