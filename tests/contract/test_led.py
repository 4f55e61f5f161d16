"""Models without native calls do the whole main job: led turn by turn, in the constrained and the plain dialect."""

from __future__ import annotations

import itertools
import json

import pytest

from late.events import (
    AgentStarted,
    AssistantMessage,
    CheckFinished,
    FileChanged,
    PlanDecided,
    RunFinished,
    StepFinished,
    ToolFinished,
)
from late.llm.openai import encode_body
from support.project import BROKEN, CART, FIXED, PLAN, drive
from support.scripted_server import ScriptedServer, say

REQUEST = "Cart.total in cart.py ignores the quantity. Fix it so that test_cart.py passes."
RIGHT = CART["cart.py"].replace(BROKEN, FIXED)
WRONG = CART["cart.py"].replace(BROKEN, "sum(price + quantity for price, quantity in self.items)")


def speak(name: str, **arguments: object):
    return say(json.dumps({"name": name, "arguments": arguments}))


def code(text: str):
    return say(f"cart.py\n```python\n{text}```")


READ = speak("read_file", path="cart.py")
STEP = {"title": "Multiply", "files": ["cart.py"], "instruction": "Multiply by the quantity."}
PLANNED = speak("write_implementation_plan", title="Count the quantity", steps=[STEP])


def check_prefixes(server: ScriptedServer) -> None:
    by_agent: dict[str, list[bytes]] = {}
    for request in server.requests:
        by_agent.setdefault(request.messages[0]["content"], []).append(request.raw)
    for bodies in by_agent.values():
        for before, after in itertools.pairwise(bodies):
            messages = encode_body({"messages": json.loads(before)["messages"]}).removeprefix(b"{").removesuffix(b"]}")
            head = before[: before.index(messages) + len(messages)]
            assert after.startswith(head)


async def test_a_plain_model_does_the_whole_job(project, data):
    with ScriptedServer([READ, PLANNED, code(RIGHT)]) as server:
        driver = drive(project, server.base_url, data, **{"main.dialect": "plain"})
        await driver.say(REQUEST)
        await driver.session.close()
        check_prefixes(server)
    assert (project / "cart.py").read_text() == RIGHT
    assert driver.of(RunFinished)[0].reason == "done"
    assert [e.name for e in driver.of(ToolFinished)] == [
        "classify_request",
        "read_file",
        "write_implementation_plan",
        "write_file",
        "spawn_subagent",
    ]
    assert driver.of(PlanDecided)[0].plan.steps[0].verify == "python3 -m unittest test_cart.py"
    assert [e.author for e in driver.of(AssistantMessage)] == [
        "harness",
        "model",
        "model",
        "harness",
        "model",
        "harness",
    ]
    assert not any("tools" in request.json for request in server.requests)
    assert ["response_format" in request.json for request in server.requests] == [True, True, False]


async def test_a_wrong_answer_gets_the_checks_output_and_another_try(project, data):
    with ScriptedServer([READ, PLANNED, code(WRONG), code(RIGHT)]) as server:
        driver = drive(project, server.base_url, data, **{"main.dialect": "plain"})
        await driver.say(REQUEST)
        await driver.session.close()
        check_prefixes(server)
    assert [event.check.exit_code for event in driver.of(CheckFinished)] == [1, 0]
    assert driver.of(StepFinished)[0].outcome == "done"
    assert "AssertionError: 53 != 150" in server.requests[3].messages[-1]["content"]
    temperatures = [request.json["temperature"] for request in server.requests]
    assert temperatures[3] > temperatures[2]


@pytest.mark.parametrize(
    ("slip", "told"),
    [
        (CART["cart.py"], "nothing would change"),
        (RIGHT.replace("def total(self):", "def total(self:"), "syntax error"),
        (RIGHT.replace("for price, quantity in", "for prize, quantity in"), "undefined name"),
        (
            RIGHT.replace(
                "    def add(self, price, quantity=1):\n        self.items.append((price, quantity))\n\n", ""
            ),
            "removed",
        ),
    ],
)
async def test_what_weak_models_get_wrong_is_refused_and_said(project, data, slip, told):
    with ScriptedServer([READ, PLANNED, code(slip), code(RIGHT)]) as server:
        driver = drive(project, server.base_url, data, **{"main.dialect": "plain"})
        await driver.say(REQUEST)
        await driver.session.close()
    assert told in server.requests[3].messages[-1]["content"]
    assert (project / "cart.py").read_text() == RIGHT
    assert len(driver.of(FileChanged)) == 1
    assert driver.of(RunFinished)[0].reason == "done"


async def test_an_answer_without_code_is_asked_for_code(project, data):
    with ScriptedServer([READ, PLANNED, say("I would multiply."), code(RIGHT)]) as server:
        driver = drive(project, server.base_url, data, **{"main.dialect": "plain"})
        await driver.say(REQUEST)
        await driver.session.close()
    assert "That was no code." in server.requests[3].messages[-1]["content"]
    assert driver.of(RunFinished)[0].reason == "done"


async def test_a_step_that_fails_gets_one_more_coder_and_is_then_reported_as_failed(project, data):
    with ScriptedServer([READ, PLANNED, *[code(WRONG)] * 2, *[code(WRONG)] * 12]) as server:
        driver = drive(project, server.base_url, data, **{"main.dialect": "plain"})
        await driver.say(REQUEST)
        await driver.session.close()
        server.then(*[])
    assert [event.agent_id for event in driver.of(AgentStarted)] == ["planner", "coder-1", "coder-2"]
    assert driver.of(RunFinished)[0].reason == "failed"
    assert "FAILED" in driver.of(RunFinished)[0].message or "failed" in driver.of(RunFinished)[0].message


async def test_one_symbol_of_a_large_file_is_chosen_shown_and_rewritten(project, data):
    many = "".join(f"\n\ndef filler_{n}():\n    return {n}\n" for n in range(40))
    (project / "cart.py").write_text(CART["cart.py"] + many)
    method = f"    def total(self):\n        return {FIXED}\n"
    choose = speak("read_file", path="cart.py", symbol="Cart.total")
    with ScriptedServer([READ, PLANNED, choose, say(f"```python\n{method}```")]) as server:
        driver = drive(project, server.base_url, data, **{"main.dialect": "plain"})
        await driver.say(REQUEST)
        await driver.session.close()
        check_prefixes(server)
    assert (project / "cart.py").read_text() == RIGHT + many
    schema = server.requests[2].json["response_format"]["json_schema"]["schema"]
    assert "Cart.total" in schema["properties"]["arguments"]["properties"]["symbol"]["enum"]
    assert driver.of(RunFinished)[0].reason == "done"


async def test_a_question_is_answered_in_words(project, data):
    with ScriptedServer([READ, say(json.dumps({"say": "Cart.total computes it."}))]) as server:
        driver = drive(project, server.base_url, data, **{"main.dialect": "plain"})
        await driver.say("Which method computes the sum? Change nothing.")
        await driver.session.close()
    assert driver.of(AssistantMessage)[-1].text == "Cart.total computes it."
    assert not driver.of(PlanDecided)
    assert driver.of(RunFinished)[0].reason == "done"


async def test_a_constrained_model_gets_edits_as_json(project, data):
    content = speak("write_file", path="cart.py", content=RIGHT)
    with ScriptedServer([READ, PLANNED, content]) as server:
        driver = drive(project, server.base_url, data, **{"main.dialect": "constrained"})
        await driver.say(REQUEST)
        await driver.session.close()
        check_prefixes(server)
    assert (project / "cart.py").read_text() == RIGHT
    assert driver.of(RunFinished)[0].reason == "done"
    assert PLAN["steps"][0]["files"] == ["cart.py"]
