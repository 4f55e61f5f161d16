"""Subagents against a scripted server: stopping one, researchers, and what is left when a process ends."""

from __future__ import annotations

import asyncio

import pytest

from late.events import (
    AgentFinished,
    AgentStarted,
    ApprovalRequested,
    RunFinished,
    StepFinished,
    StepStarted,
    ToolFinished,
    ToolStarted,
)
from late.session.session import INTERRUPTED, Decision
from late.session.store import SessionStore
from support.project import EDIT, FIXED, PLAN, SPAWN, drive, make_project, yes
from support.scripted_server import ScriptedServer, Signal, call, calls, say, sse, text


async def test_stopping_one_coder_gives_the_planner_a_report_and_no_success(project, data):
    never = Signal()
    script = [
        call("write_implementation_plan", PLAN),
        call("spawn_subagent", SPAWN),
        call("target_edit", EDIT),
        sse(text("I am still"), never),
        say("It was stopped."),
    ]
    with ScriptedServer(script) as server:
        driver = drive(project, server.base_url, data)
        await driver.session.submit("Fix it.")
        await server.arrived(4).seen()
        await driver.session.stop("coder-1")
        await driver.session.wait_idle()
        await driver.session.close()
    assert driver.of(StepFinished)[0].outcome == "cancelled"
    assert driver.of(AgentFinished)[0].changed_files == ("cart.py",)
    report = server.requests[4].messages[-1]["content"]
    assert "cancelled" in report
    assert "cart.py (+1 -1)" in report
    assert "- [ ] 1. Multiply" in (project / "implementation_plan.md").read_text()


async def test_a_researcher_answers_from_a_fresh_context_without_any_plan(project, data):
    script = [
        call("spawn_subagent", {"agent_type": "researcher", "goal": "Where is the sum computed?"}),
        call("search", {"pattern": "sum"}),
        say("In Cart.total, cart.py:9."),
        say("It is computed in Cart.total."),
    ]
    with ScriptedServer(script) as server:
        driver = drive(project, server.base_url, data)
        await driver.say("Where is the sum computed?")
        await driver.session.close()
    assert driver.of(AgentFinished)[0].outcome == "done"
    assert [m["role"] for m in server.requests[1].messages] == ["system", "user"]
    assert "Where is the sum computed?" in server.requests[1].messages[1]["content"]
    names = {tool["function"]["name"] for tool in server.requests[1].json["tools"]}
    assert names.isdisjoint({"write_file", "target_edit", "spawn_subagent", "write_implementation_plan"})
    assert server.requests[3].messages[-1]["content"] == "In Cart.total, cart.py:9."


@pytest.mark.parametrize(
    ("name", "arguments"), [("write_file", {"path": "x", "content": "x"}), ("bash", {"command": "touch x"})]
)
async def test_a_researcher_that_tries_to_write_is_refused_without_a_question(project, data, name, arguments):
    script = [
        call("spawn_subagent", {"agent_type": "researcher", "goal": "Look."}),
        call(name, arguments),
        say("I cannot write."),
        say("Fine."),
    ]
    with ScriptedServer(script) as server:
        driver = drive(project, server.base_url, data)
        await driver.say("Look.")
        await driver.session.close()
    assert not (project / "x").exists()
    assert not driver.of(ApprovalRequested)
    assert driver.of(ToolFinished)[0].status in {"refused", "error"}


async def test_a_coder_that_is_blocked_is_not_taken_for_done(project, data):
    script = [
        call("write_implementation_plan", PLAN),
        call("spawn_subagent", SPAWN),
        say("BLOCKED: the step needs another file."),
        say("It is blocked."),
    ]
    with ScriptedServer(script) as server:
        driver = drive(project, server.base_url, data)
        await driver.say("Fix it.")
        await driver.session.close()
    assert driver.of(StepFinished)[0].outcome == "blocked"
    assert "needs another file" in server.requests[3].messages[-1]["content"]
    assert driver.of(RunFinished)[0].reason == "failed"


async def test_a_step_without_a_check_is_unverified(project, data):
    (project / "notes.txt").write_text("one\n")
    plan = {"title": "T", "steps": [{"title": "S", "files": ["notes.txt"], "instruction": "Say two."}]}
    script = [
        call("write_implementation_plan", plan),
        call("spawn_subagent", SPAWN),
        call("target_edit", {"path": "notes.txt", "search": "one", "replace": "two"}),
        say("Done, verified and tested."),
        say("Done."),
    ]
    with ScriptedServer(script) as server:
        driver = drive(project, server.base_url, data)
        await driver.say("Say two.")
        await driver.session.close()
    assert driver.of(StepFinished)[0].outcome == "unverified"
    assert "unverified" in driver.of(RunFinished)[0].message


async def test_two_calls_in_one_answer_each_get_a_result_also_when_the_run_is_stopped_between(project, data):
    script = [
        calls(("bash", {"command": "python3 -c 'print(1)'"}), ("read_file", {"path": "README.md"})),
        say("Go on."),
    ]
    plan_first = [call("write_implementation_plan", PLAN), call("spawn_subagent", SPAWN), *script, say("x"), say("x")]
    asked = asyncio.Event()

    def answer(request: ApprovalRequested) -> Decision | None:
        if request.kind == "plan":
            return Decision(approved=True)
        asked.set()
        return None

    with ScriptedServer(plan_first) as server:
        driver = drive(project, server.base_url, data, answer)
        await driver.session.submit("Fix it.")
        await asked.wait()
        await driver.session.stop()
        await driver.session.close()
    assert [(e.name, e.status) for e in driver.of(ToolFinished) if e.agent_id == "coder-1"] == [
        ("bash", "cancelled"),
        ("read_file", "cancelled"),
    ]
    assert driver.of(RunFinished)[-1].reason == "cancelled"


async def test_a_command_that_was_running_when_the_process_died_is_neither_repeated_nor_forgotten(tmp_path, data):
    project = make_project(tmp_path / "work")
    script = [
        call("write_implementation_plan", PLAN),
        call("spawn_subagent", SPAWN),
        call("bash", {"command": "python3 -c 'import time; time.sleep(60)'"}),
        call("target_edit", EDIT),
        say("Done."),
        say("Done."),
    ]
    started = asyncio.Event()
    with ScriptedServer(script) as server:
        first = drive(project, server.base_url, data, lambda r: Decision(approved=True))
        first.session.subscribe(
            lambda event: started.set() if isinstance(event, ToolStarted) and event.name == "bash" else None
        )
        await first.session.submit("Fix it.")
        await started.wait()
        session_id = first.session.id
        await first.session.suspend()  # the log ends here, as after a kill
        second = drive(project, server.base_url, data, yes, resume=session_id)
        await second.session.go_on()
        await second.session.wait_idle()
        await second.session.close()
    interrupted = [event for event in second.of(ToolFinished) if event.status == "interrupted"]
    stored = list(SessionStore(data / "sessions.db").events(session_id))
    assert [event.content for event in stored if isinstance(event, ToolFinished) and event.status == "interrupted"] == [
        INTERRUPTED
    ]
    assert len(interrupted) <= 1
    assert [event.agent_id for event in stored if isinstance(event, AgentStarted)] == ["planner", "coder-1"]
    assert len([event for event in stored if isinstance(event, StepStarted)]) == 1
    assert INTERRUPTED in server.requests[3].messages[-1]["content"]
    assert FIXED in (project / "cart.py").read_text()
    assert second.of(RunFinished)[-1].reason == "done"


async def test_the_check_that_the_plan_names_may_be_run_by_its_coder_without_a_question(project, data):
    script = [
        call("write_implementation_plan", PLAN),
        call("spawn_subagent", SPAWN),
        call("target_edit", EDIT),
        call("bash", {"command": PLAN["steps"][0]["verify"]}),
        call("bash", {"command": "python3 -c 'print(1)'"}),
        say("Done."),
        say("Done."),
    ]
    with ScriptedServer(script) as server:
        driver = drive(project, server.base_url, data)
        await driver.say("Fix it.")
        await driver.session.close()
    assert [request.kind for request in driver.of(ApprovalRequested)] == ["plan", "tool"]
    assert "print(1)" in driver.of(ApprovalRequested)[1].detail
