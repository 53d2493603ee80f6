"""Uses of the client as type checkers see them: a line that ends with `# refused` is a mistake that they must find."""

import uuid
from datetime import datetime

from agent_runtime import (
    NULL,
    AgentRuntime,
    AgentRuntimeError,
    AsyncAgentRuntime,
    AuthError,
    Page,
    Record,
    RunReader,
    Stream,
    parse_event,
    types,
)
from agent_runtime.inputs import SecretRefInput


def refused_before_it_runs(runtime: AgentRuntime, body: bytes, headers: dict[str, str]) -> None:
    # How a client is made.
    AgentRuntime("https://runtime.example", "svc_bt_x", timeout=5.0, retries=0)
    AgentRuntime("https://runtime.example", lambda: "svc_bt_x", headers={"x-team": "blue"})
    AgentRuntime(token=b"svc_bt_x")  # refused
    AgentRuntime("https://runtime.example", retries="2")  # refused
    AgentRuntime("https://runtime.example", tokens="svc_bt_x")  # refused
    reader: RunReader = AgentRuntime.for_run("https://runtime.example", "svc_pt_x")
    reader.runs  # refused
    reader.follow(7)  # refused

    # What a start takes: an agent and a message, or a flow.
    started = runtime.runs.create(agent_id="a", message="Hello", labels={"channel": "mail"})
    runtime.runs.create(flow_id="billing.refund", input={"orderId": "1"})
    runtime.runs.create(agent_id="a")  # refused
    runtime.runs.create(message="Hello")  # refused
    runtime.runs.create(agent_id="a", message="Hello", flow_id="billing.refund")  # refused
    runtime.runs.create(agent_id=uuid.uuid4(), message="Hello")  # refused
    runtime.runs.create(agent_id="a", message="Hello", labels=["mail"])  # refused
    runtime.runs.create("a", "Hello")  # refused
    runtime.runs.create(agentId="a", message="Hello")  # refused
    runtime.runs.create(agent_id="a", message="Hello", options={"timeout": 5.0, "idempotency_key": "k"})
    runtime.runs.create(agent_id="a", message="Hello", options={"timeouts": 5.0})  # refused

    # Answers have types; what older servers leave out may be absent.
    run: types.Run = started.run
    at: datetime = run.created_at
    text: str = run.created_at  # refused
    ended: datetime = run.completed_at  # refused
    print(at, text, ended, run.flow_id)
    print(run.flowId)  # refused
    print(run.usage.calls)  # refused
    if run.usage is not None:
        calls: int = run.usage.calls
        cost: str = run.usage.cost_usd  # refused
        print(calls, cost)
    print(run.agent.version)  # refused
    if run.agent:
        print(run.agent.version, run.agent.via)
    if run.status == "a-later-status":
        print(run["laterField"], run.raw)
    print(started.public_token.token)  # refused

    # Lists are pages of rows.
    page: Page[types.Project] = runtime.projects.list(limit=2)
    for project in page:
        print(project.name, project.created_at.year)
        print(project.names)  # refused
    following: Page[types.Project] = page.next()  # refused
    print(following, page.has_more, page.next_cursor)
    runtime.projects.list(limit="2")  # refused
    rows: list[types.AccessDecision] = list(runtime.audit.authz(order="desc", from_=datetime.now()))
    print(rows[0].actor_subject)
    runtime.audit.authz(limit=3, ordered="desc")  # refused

    # Members, teams and grants.
    member: types.Membership = runtime.projects.memberships.add("p", email="ada@example.com", role="editor")
    runtime.projects.memberships.update_role("p", "u", role="viewer")
    runtime.projects.memberships.update_role("p", role="viewer")  # refused
    runtime.projects.memberships.update_role("p", "u")  # refused
    runtime.projects.memberships.updateRole("p", "u", role="viewer")  # refused
    nothing: str = runtime.projects.memberships.remove("p", "u")  # refused
    runtime.projects.team_grants.add("p", team_id="t", role="admin")
    runtime.teams.project_grants.list("t")
    for entry in runtime.projects.access.list("p"):
        for way in entry.via:
            if way.kind == "team":
                print(way.team_name)
    print(member.role, nothing)

    # Null is not None.
    runtime.webhook_endpoints.update("e", filter=NULL)
    runtime.webhook_endpoints.update("e", filter=None)
    runtime.projects.create(name=NULL)  # refused
    reference: SecretRefInput = {"envName": "production", "name": "SIGNING"}
    runtime.webhook_endpoints.create(url="https://hooks.example", events=["run.finished"], secret_ref=reference)
    runtime.webhook_endpoints.create(url="https://hooks.example", events=["run.finished"])  # refused
    runtime.webhook_endpoints.update("e", secret_ref={"env_name": "production", "name": "SIGNING"})  # refused
    runtime.webhook_endpoints.update("e", secret_ref={"name": "SIGNING"})  # refused
    endpoint = runtime.webhook_endpoints.get("e")
    runtime.webhook_endpoints.update("e", secret_ref=endpoint.secret_ref)

    # Streams: kinds tell what the data is.
    events: Stream[types.RunStreamEvent] = runtime.runs.follow("r", after=3)
    for event in events:
        if event.kind == "text.delta":
            print(event.data.text, event.data.offset)
            print(event.data.texts)  # refused
        elif isinstance(event, types.RunFailedEvent):
            print(event.data.failure_message, event.seq)
        elif event.kind == "step.completed" and event.data.type == "model":
            print(event.data.text, event.data.finish_reason)
            print(event.data.is_error)  # refused
        elif event.kind == "step.completed" and event.data.type == "tool":
            print(event.data.name)
        elif event.kind == "child.started":
            print(event.data.flow_id)
        elif isinstance(event, types.OtherRunEvent):
            print(str(event.kind), event.data["what"])
    runtime.runs.follow("r", since=3)  # refused
    number: str = events.last_event_id  # refused
    print(number)

    # Webhooks.
    parsed = parse_event(body, headers, ["whsec_a", "whsec_b"])
    if parsed.type == "run.finished":
        print(parsed.data.run.agent.version if parsed.data.run.agent else "", parsed.data.run.id)
        print(parsed.data.run.agent.version)  # refused
        print(parsed.data.runs)  # refused
    parse_event(headers, body, "whsec_a")  # refused
    parse_event(body, headers)  # refused

    # Errors.
    try:
        runtime.me.permissions()
    except AuthError as error:
        code: str = error.server_code  # refused
        print(code, error.reason, error.details["reason"])
    except AgentRuntimeError as error:
        print(error.code, error.status, error.serverCode)  # refused
    later: Record = runtime.request("GET", "/v1/later", query={"limit": 2})
    print(later)


async def and_asynchronously(runtime: AsyncAgentRuntime) -> None:
    started = await runtime.runs.create(agent_id="a", message="Hello")
    runtime.runs.get("r").status  # refused
    for _ in runtime.runs.follow("r"):  # refused
        pass
    async for event in runtime.runs.follow(started.run.id):
        print(event.kind)
    async for project in runtime.projects.list():
        print(project.name)
    page = await runtime.projects.list()
    print(page.data[0].name)
    await runtime.runs.wait("r", timeout=60)
    await runtime.runs.wait("r", seconds=60)  # refused
