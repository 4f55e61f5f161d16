"""The engine against a scripted server: plan, approval, coder, check, and the rules that hold whatever a model does."""

from __future__ import annotations

import asyncio
import itertools
import json
import subprocess

from late.events import (
    AgentFinished,
    AgentStarted,
    ApprovalRequested,
    AssistantMessage,
    CheckFinished,
    FileChanged,
    PlanDecided,
    RequestRetried,
    RunFinished,
    StepFinished,
    ToolFinished,
)
from late.llm.openai import encode_body
from late.session.session import Decision
from support.project import BROKEN, CHECK, EDIT, FIXED, HAPPY, PLAN, SPAWN, Driver, drive, no, yes
from support.scripted_server import Llama, ScriptedServer, Signal, call, calls, say, sse, text
from support.scripted_server import json as answer


def results(driver: Driver) -> list[tuple[str, str]]:
    return [(event.name, event.status) for event in driver.of(ToolFinished)]


async def test_a_change_goes_from_request_to_plan_to_coder_to_a_passed_check(project, data):
    with ScriptedServer(HAPPY) as server:
        driver = drive(project, server.base_url, data)
        await driver.say("The total ignores the quantity.")
        await driver.session.close()
    assert FIXED in (project / "cart.py").read_text()
    assert driver.of(RunFinished)[-1].reason == "done"
    assert driver.of(StepFinished)[0].outcome == "done"
    assert driver.of(CheckFinished)[0].check.exit_code == 0
    assert driver.of(AgentFinished)[0].changed_files == ("cart.py",)
    assert "- [x] 1. Multiply" in (project / "implementation_plan.md").read_text()
    report = server.requests[-1].messages[-1]
    assert report["role"] == "tool"
    assert "Step 1, Multiply: done." in report["content"]
    assert "cart.py (+1 -1)" in report["content"]


async def test_each_request_of_an_agent_starts_with_the_bytes_of_its_last_one(project, data):
    script = [*HAPPY, call("search", {"pattern": "total"}), say("It is in cart.py.")]
    with ScriptedServer(script) as server:
        driver = drive(project, server.base_url, data)
        await driver.say("The total ignores the quantity.")
        await driver.say("Where is the total?")
        await driver.session.close()
    by_agent: dict[str, list[bytes]] = {}
    for request in server.requests:
        by_agent.setdefault(request.messages[0]["content"], []).append(request.raw)
    assert sorted(len(bodies) for bodies in by_agent.values()) == [2, 6]
    for bodies in by_agent.values():
        for before, after in itertools.pairwise(bodies):
            messages = encode_body({"messages": json.loads(before)["messages"]}).removeprefix(b"{")
            messages = messages.removesuffix(b"]}")
            head = before[: before.index(messages) + len(messages)]
            assert after.startswith(head)


async def test_planner_and_subagents_hold_different_slots(project, data):
    with ScriptedServer(HAPPY, llama=Llama(slots=2)) as server:
        driver = drive(project, server.base_url, data)
        await driver.say("Fix it.")
        await driver.session.close()
    assert [request.json["id_slot"] for request in server.requests] == [0, 0, 0, 1, 1, 0]


async def test_a_coder_before_approval_is_refused(project, data):
    with ScriptedServer([call("spawn_subagent", SPAWN), say("I need a plan first.")]) as server:
        driver = drive(project, server.base_url, data)
        await driver.say("Fix it.")
        await driver.session.close()
    assert results(driver) == [("spawn_subagent", "error")]
    assert "No plan is approved" in driver.of(ToolFinished)[0].content
    assert [event.role for event in driver.of(AgentStarted)] == ["planner"]


async def test_a_planner_that_tries_to_write_is_refused(project, data):
    before = (project / "cart.py").read_bytes()
    script = [
        call("write_file", {"path": "cart.py", "content": "x"}),
        call("target_edit", EDIT),
        call("bash", {"command": "sed -i s/price/cost/ cart.py"}),
        call("bash", {"command": "echo x > cart.py"}),
        say("I cannot."),
    ]
    with ScriptedServer(script) as server:
        driver = drive(project, server.base_url, data)
        await driver.say("Fix it.")
        await driver.session.close()
    assert (project / "cart.py").read_bytes() == before
    assert [status for _, status in results(driver)] == ["error", "error", "refused", "refused"]
    assert not driver.of(ApprovalRequested)


async def test_a_rejected_plan_goes_back_with_the_persons_words(project, data):
    script = [
        call("write_implementation_plan", PLAN),
        call("write_implementation_plan", {**PLAN, "title": "Second"}),
        say("As you wish."),
    ]

    def answer(request: ApprovalRequested) -> Decision:
        return Decision(approved=False, words="use a loop" if "Second" not in request.title else "")

    with ScriptedServer(script) as server:
        driver = drive(project, server.base_url, data, answer)
        await driver.say("Fix it.")
        await driver.session.close()
    assert "use a loop" in server.requests[1].messages[-1]["content"]
    assert [event.decision for event in driver.of(PlanDecided)] == ["rejected", "rejected"]
    assert BROKEN in (project / "cart.py").read_text()


async def test_a_plan_edited_by_the_person_is_what_is_carried_out(project, data):
    plan_file = project / "implementation_plan.md"

    def answer(request: ApprovalRequested) -> Decision:
        plan_file.write_text(plan_file.read_text().replace("1. Multiply", "1. Multiply with care"))
        return Decision(approved=True, edited=True)

    with ScriptedServer(HAPPY[1:]) as server:
        driver = drive(project, server.base_url, data, answer)
        await driver.say("Fix it.")
        await driver.session.close()
    decided = driver.of(PlanDecided)[0]
    assert decided.decision == "approved_with_edits"
    assert decided.plan.steps[0].title == "Multiply with care"
    assert "Multiply with care" in server.requests[2].messages[-1]["content"]


async def test_what_changed_behind_the_question_is_asked_about_again(project, data):
    plan_file = project / "implementation_plan.md"
    asked: list[str] = []

    def answer(request: ApprovalRequested) -> Decision:
        asked.append(request.detail)
        if len(asked) == 1:
            plan_file.write_text(plan_file.read_text().replace("cart.py", "README.md"))
            return Decision(approved=True)
        return Decision(approved=False)

    with ScriptedServer([call("write_implementation_plan", PLAN), say("Rejected.")]) as server:
        driver = drive(project, server.base_url, data, answer)
        await driver.say("Fix it.")
        await driver.session.close()
    assert "README.md" not in asked[0]
    assert "README.md" in asked[1]
    assert driver.of(PlanDecided)[0].decision == "rejected"


async def test_a_failing_check_goes_back_to_the_coder_and_is_never_success(project, data):
    wrong = {**EDIT, "replace": "sum(price + quantity for price, quantity in self.items)"}
    script = [
        call("write_implementation_plan", PLAN),
        call("spawn_subagent", SPAWN),
        call("target_edit", wrong),
        say("Done, all tests pass!"),
        say("Still done."),
        say("Really done."),
        say("It failed."),
    ]
    with ScriptedServer(script) as server:
        driver = drive(project, server.base_url, data)
        await driver.say("Fix it.")
        await driver.session.close()
    assert [event.check.exit_code for event in driver.of(CheckFinished)] == [1, 1, 1]
    assert driver.of(StepFinished)[0].outcome == "failed"
    assert driver.of(RunFinished)[0].reason == "failed"
    assert f"The check failed: `{CHECK}`" in server.requests[4].messages[-1]["content"]
    assert "failed" in server.requests[-1].messages[-1]["content"]


async def test_a_write_outside_the_steps_files_asks_and_says_why(project, data):
    script = [
        call("write_implementation_plan", PLAN),
        call("spawn_subagent", SPAWN),
        call("write_file", {"path": "other.py", "content": "x = 1\n"}),
        call("target_edit", EDIT),
        say("Done."),
        say("Done."),
    ]

    def answer(request: ApprovalRequested) -> Decision:
        return Decision(approved=request.kind == "plan", words="not that file")

    with ScriptedServer(script) as server:
        driver = drive(project, server.base_url, data, answer)
        await driver.say("Fix it.")
        await driver.session.close()
    question = driver.of(ApprovalRequested)[1]
    assert question.kind == "tool"
    assert "step" in question.reason
    assert not (project / "other.py").exists()
    assert ("write_file", "denied") in results(driver)
    assert any("not that file" in event.content for event in driver.of(ToolFinished))


async def test_a_planner_that_stops_with_approved_steps_left_is_told_which(project, data):
    script = [
        call("write_implementation_plan", PLAN),
        say("The plan is approved."),
        call("spawn_subagent", SPAWN),
        call("target_edit", EDIT),
        say("Done."),
        say("All done."),
    ]
    with ScriptedServer(script) as server:
        driver = drive(project, server.base_url, data)
        await driver.say("Fix it.")
        await driver.session.close()
    assert "still pending: 1 (Multiply)" in server.requests[2].messages[-1]["content"]
    assert driver.of(RunFinished)[0].reason == "done"


async def test_a_stream_cut_in_the_middle_is_shown_and_sent_again(project, data):
    script = [sse(text("The total is in"), done=False).cut(), say("The total is in cart.py.")]
    with ScriptedServer(script) as server:
        driver = drive(project, server.base_url, data)
        await driver.say("Where is the total?")
        await driver.session.close()
    assert driver.of(RequestRetried)[0].partial_text == "The total is in"
    assert [event.text for event in driver.of(AssistantMessage)] == ["The total is in cart.py."]
    assert server.requests[0].raw == server.requests[1].raw


async def test_arguments_that_are_no_json_get_an_error_and_the_history_stays_valid(project, data):
    script = [call("read_file", '{"path": '), call("read_file", {"path": "cart.py"}), say("Read.")]
    with ScriptedServer(script) as server:
        driver = drive(project, server.base_url, data)
        await driver.say("Read cart.py")
        await driver.session.close()
    assert [status for _, status in results(driver)] == ["error", "ok"]
    history = server.requests[1].messages
    assert history[-2]["tool_calls"][0]["function"]["arguments"] == "{}"
    assert "A valid call: read_file(" in history[-1]["content"]


async def test_no_call_of_an_answer_that_was_cut_at_its_length_runs(project, data):
    script = [
        call("write_implementation_plan", PLAN),
        call("spawn_subagent", SPAWN),
        calls(("target_edit", EDIT), finish_reason="length"),
        call("target_edit", EDIT),
        say("Done."),
        say("Done."),
    ]
    with ScriptedServer(script) as server:
        driver = drive(project, server.base_url, data)
        await driver.say("Fix it.")
        await driver.session.close()
    assert ("target_edit", "error") in results(driver)
    assert len(driver.of(FileChanged)) == 1


async def test_the_same_call_with_the_same_result_three_times_stops_the_agent(project, data):
    with ScriptedServer([call("read_file", {"path": "README.md"})] * 3) as server:
        driver = drive(project, server.base_url, data)
        await driver.say("Read.")
        await driver.session.close()
    assert driver.of(RunFinished)[0].reason == "failed"
    assert "3 times in a row" in driver.of(RunFinished)[0].message


async def test_a_message_sent_while_busy_enters_at_the_next_turn(project, data):
    gate = Signal()
    with ScriptedServer([call("read_file", {"path": "cart.py"}).held(gate), say("Both answered.")]) as server:
        driver = drive(project, server.base_url, data)
        await driver.session.submit("First.")
        await server.arrived(1).seen()
        await driver.session.submit("Second.")
        gate.set()
        await driver.session.wait_idle()
        await driver.session.close()
    assert "Second." in server.requests[1].messages[-1]["content"]
    assert len(server.requests) == 2


async def test_a_denied_tool_leaves_a_result_and_the_planner_goes_on(project, data):
    with ScriptedServer([call("write_implementation_plan", PLAN), say("Then not.")]) as server:
        driver = drive(project, server.base_url, data, no)
        await driver.say("Fix it.")
        await driver.session.close()
    assert driver.of(RunFinished)[0].reason == "done"
    assert "rejected" in server.requests[1].messages[-1]["content"]


async def test_a_stopped_run_can_be_continued_with_a_valid_history(project, data):
    never = Signal()
    with ScriptedServer([sse(text("I will"), never), say("Fine.")]) as server:
        driver = drive(project, server.base_url, data)
        await driver.session.submit("Fix it.")
        await server.arrived(1).seen()
        await driver.session.stop()
        server.requests[0].disconnected.wait()
        assert driver.of(RunFinished)[0].reason == "cancelled"
        await driver.say("Go on.")
        await driver.session.close()
    roles = [message["role"] for message in server.requests[1].messages]
    assert roles in (["system", "user", "assistant", "user"], ["system", "user"])


async def test_a_session_that_ended_while_it_waited_asks_again_after_resume(project, data):
    with ScriptedServer(HAPPY[1:]) as server:
        asked = asyncio.Event()
        first = drive(project, server.base_url, data, lambda _: asked.set())
        await first.session.submit("Fix it.")
        await asked.wait()
        session_id = first.session.id
        await first.session.suspend()

        second = drive(project, server.base_url, data, yes, resume=session_id)
        assert second.session.interrupted
        await second.session.go_on()
        await second.session.wait_idle()
        await second.session.close()
    assert len(second.of(ApprovalRequested)) == 1
    assert second.of(RunFinished)[0].reason == "done"
    assert FIXED in (project / "cart.py").read_text()
    assert [request.messages[0] for request in server.requests[:2]] == [server.requests[0].messages[0]] * 2


def test_the_project_is_a_git_repository_that_undoes_everything(project):
    (project / "cart.py").write_text("x")
    subprocess.run(["git", "checkout", "-q", "--", "."], cwd=project, check=True)
    assert BROKEN in (project / "cart.py").read_text()


async def test_a_slot_that_somebody_else_uses_is_left_to_them(project, data):
    with ScriptedServer([say("One."), say("Two.")]) as server:
        server.others["/slots"] = answer([{"id": 0, "is_processing": True}, {"id": 1, "is_processing": False}])
        driver = drive(project, server.base_url, data)
        await driver.say("Hello?")
        server.others["/slots"] = answer([{"id": 0, "is_processing": False}, {"id": 1, "is_processing": True}])
        await driver.say("Hello again?")
        await driver.session.close()
    assert [request.json.get("id_slot") for request in server.requests] == [None, 0]
