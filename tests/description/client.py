"""Lists runs and reads a page of progress with the generated client, and prints what it understood of them."""

import json
import os
import sys
from uuid import UUID

from agent_runtime_client import AuthenticatedClient
from agent_runtime_client.api.runs import runs_list, runs_progress
from agent_runtime_client.models import Order, Progress, RunPage, StepCompletedEvent

run_id = UUID(sys.argv[1])
client = AuthenticatedClient(base_url=os.environ["BASE_URL"], token=os.environ["TOKEN"])
with client:
    page = runs_list.sync(client=client, limit=1, order=Order.ASC)
    assert isinstance(page, RunPage), page
    rest = runs_list.sync(client=client, cursor=page.next_cursor, order=Order.ASC)
    assert isinstance(rest, RunPage), rest
    progress = runs_progress.sync(run_id, client=client, after=0, limit=200)
    assert isinstance(progress, Progress), progress

steps = [event for event in progress.data if isinstance(event, StepCompletedEvent)]
print(
    json.dumps(
        {
            "runs": [str(run.id) for run in page.data + rest.data],
            "status": progress.run.status.value,
            "events": [[event.seq, type(event).__name__, event.kind] for event in progress.data],
            "answers": [[type(step.data).__name__, step.data.text] for step in steps],
        }
    )
)
