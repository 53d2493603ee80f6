"""What a person without the role gets, from a server that checks who may do what."""

import os
import pathlib
import re
import unittest
from typing import Any

import agent_runtime

from ..both import of_both

URL, TOKEN, PROJECT, VIEWER, TOKEN_OF_VIEWER = (
    os.environ[name] for name in ("URL", "TOKEN", "PROJECT", "VIEWER", "TOKEN_OF_VIEWER")
)


class Denied(unittest.TestCase):
    @of_both
    def test_a_denial_of_the_server_is_an_auth_error_with_its_message(self, make: Any) -> None:
        client = make(URL, TOKEN_OF_VIEWER)
        calls = (
            lambda one: one.projects.memberships.add(PROJECT, email="ada@example.com", role="editor"),
            lambda one: one.projects.memberships.update_role(PROJECT, VIEWER, role="owner"),
            lambda one: one.projects.memberships.remove(PROJECT, VIEWER),
            lambda one: one.projects.access.list(PROJECT),
            lambda one: one.projects.team_grants.list(PROJECT),
            lambda one: one.audit.authz(order="desc"),
        )
        for call in calls:
            with self.assertRaises(agent_runtime.AuthError) as raised:
                client.do(call)
            error = raised.exception
            self.assertEqual((error.server_code, error.reason, error.status), ("permission-denied", "forbidden", 403))
            self.assertRegex(error.message, "(?i)permission denied")
            self.assertEqual(error.details["reason"], error.message)
            self.assertRegex(error.request_id or "", "^req-")
        with self.assertRaises(agent_runtime.AuthError) as raised:
            make(URL, "svc_bt_nobody").do(lambda one: one.me.permissions())
        self.assertEqual(raised.exception.reason, "unauthenticated")

    @of_both
    def test_the_decisions_are_listed_newest_first(self, make: Any) -> None:
        rows = make(URL, TOKEN).do(lambda one: one.audit.authz(order="desc", outcome="denied", limit=2), 5)
        self.assertTrue(rows)
        self.assertEqual(sorted(rows, key=lambda row: row.timestamp, reverse=True), rows)
        self.assertEqual({row.outcome for row in rows}, {"denied"})

    def test_the_readme_tells_of_denials(self) -> None:
        readme = (pathlib.Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
        blocks = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
        given = {"project_id": PROJECT, "viewer_id": VIEWER, "token_of_a_viewer": TOKEN_OF_VIEWER}
        exec(compile(next(one for one in blocks if "token_of_a_viewer" in one), "README.md", "exec"), given)
