import copy
import pickle
import unittest
from datetime import UTC, datetime

from agent_runtime import Record, types
from agent_runtime._record import camel, snake, time_of

RUN = {
    "id": "r",
    "createdAt": "2026-11-25T09:30:12.043Z",
    "completedAt": None,
    "labels": {"channel": "mail"},
    "usage": {"calls": 2, "costUsd": 0.1, "tokens": {"prompt": 1}},
    "laterField": {"list": [1, {"deep": True}]},
    "laterTime": "2026-11-25T09:30:12.043Z",
}


class Records(unittest.TestCase):
    def test_fields_are_read_by_their_names_in_python(self) -> None:
        run = types.Run(RUN)
        self.assertEqual(run.created_at, datetime(2026, 11, 25, 9, 30, 12, 43000, UTC))
        self.assertIsNone(run.completed_at)
        assert run.usage is not None
        self.assertEqual((type(run.usage), run.usage.cost_usd, run.usage.tokens.prompt), (types.Usage, 0.1, 1))
        self.assertIs(run.usage, run.usage)
        self.assertEqual(run.labels, {"channel": "mail"})
        self.assertEqual(run["createdAt"], RUN["createdAt"])
        self.assertIn("laterField", run)
        self.assertEqual(list(run), list(RUN))
        self.assertEqual(run.raw, RUN)

    def test_what_a_later_server_adds_is_there(self) -> None:
        run = types.Run(RUN)
        later = getattr(run, "later_field")  # noqa: B009
        self.assertEqual((later.list[0], later.list[1].deep), (1, True))
        self.assertIn("later_field", dir(run))

    def test_what_an_earlier_server_leaves_out_is_none_or_said(self) -> None:
        run = types.Run(RUN)
        self.assertIsNone(run.agent)
        with self.assertRaisesRegex(AttributeError, "did not send the field 'flowId' of this Run"):
            _ = run.flow_id
        with self.assertRaisesRegex(AttributeError, "no field 'nothing'"):
            getattr(run, "nothing")  # noqa: B009

    def test_a_value_of_another_type_comes_as_it_is(self) -> None:
        run = types.Run({**RUN, "usage": "much", "agent": [1]})
        self.assertEqual((run.usage, run.agent), ("much", [1]))

    def test_a_record_does_not_change_and_is_copied_whole(self) -> None:
        run = types.Run(RUN)
        with self.assertRaisesRegex(AttributeError, "does not change"):
            run.id = "other"
        with self.assertRaises(AttributeError):
            del run.id
        for other in (pickle.loads(pickle.dumps(run)), copy.copy(run), copy.deepcopy(run)):
            self.assertEqual((other, type(other)), (run, types.Run))
        self.assertNotEqual(run, types.Run({**RUN, "id": "s"}))
        self.assertNotEqual(run, types.WebhookRun(RUN))
        self.assertTrue(Record({}))

    def test_one_of_several_is_told_by_its_tag_or_its_fields(self) -> None:
        make = types.MAKERS["Way"]
        self.assertIs(type(make({"kind": "team", "teamId": "t"})), types.TeamWay)
        other = make({"kind": "by-balloon", "height": 3})
        self.assertEqual((type(other), other.kind, other.height), (types.OtherWay, "by-balloon", 3))
        model = {
            "step": 1,
            "attempt": 1,
            "type": "model",
            "name": "m",
            "text": "t",
            "toolCalls": [],
            "finishReason": "stop",
        }
        completed = types.StepCompletedEvent({"kind": "step.completed", "data": {**model, "tokens": {}}})
        self.assertIs(type(completed.data), types.ModelStepAnswer)
        completed = types.StepCompletedEvent({"kind": "step.completed", "data": {"type": "later", "step": 3}})
        self.assertIs(type(completed.data), types.OtherStepCompletedData)
        self.assertEqual(completed.data.step, 3)

    def test_names_go_there_and_back(self) -> None:
        for name in ("createdAt", "id", "from", "pass", "costUsd", "orgsHasMore"):
            self.assertEqual(camel(snake(name)), name)
        self.assertEqual((snake("pass"), snake("costUsd")), ("pass_", "cost_usd"))

    def test_times_are_read_in_every_version_of_python(self) -> None:
        half_past = datetime(2026, 1, 2, 3, 4, 5, 678901, UTC)
        self.assertEqual(time_of("2026-01-02T03:04:05.6789012Z"), half_past)
        self.assertEqual(time_of("2026-01-02T04:04:05.678901+01:00"), half_past)
        with self.assertRaises(ValueError):
            time_of("yesterday")

    def test_every_type_has_only_fields_that_can_be_converted(self) -> None:
        from agent_runtime._record import _plan

        kinds = [one for one in vars(types).values() if isinstance(one, type) and issubclass(one, Record)]
        self.assertGreater(len(kinds), 150)
        for kind in kinds:
            _plan(kind)

    def test_what_is_shown_has_no_credential(self) -> None:
        for token in (
            "svc_bt_" + "a1" * 24,
            "svc_pt_eyJ.c2ln-_",
            "svc_en_" + "b2" * 24,
            "svc_lk_a.b",
            "whsec_MfKQ9r8GKYqrTwjUPD8+/=",
        ):
            for fields in ({"token": token}, {"later": f"Bearer {token}"}):
                shown = repr(types.MintedToken(fields))
                self.assertNotIn(token, shown)
                self.assertNotIn(token[8:], shown)
