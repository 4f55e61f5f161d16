"""What a led model may do next, and which files a request is about."""

from pathlib import Path

import pytest

from late.agent.board import PlanBoard
from late.agent.focus import concerns_all, defining_files, insertion_point, named_files, named_paths
from late.agent.moves import planner_move
from late.events import ToolCall
from late.llm.messages import AgentMessage, Conversation, SystemMessage, ToolMessage, UserMessage
from late.workspace.outline import symbols_of

FILES = ["README.md", "shop/cart.py", "shop/tax.py", "tests/test_cart.py", "users.py", "greet.py"]


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        ("The total in shop/cart.py ignores the quantity. Fix it so that tests/test_cart.py passes.", ["shop/cart.py"]),
        ("Fix total in cart.py.", ["shop/cart.py"]),
        ("Rename f: it is defined in users.py and used in greet.py.", ["users.py", "greet.py"]),
        ("Create a new file temperature.py with two functions.", ["temperature.py"]),
        ("Write tests for the tax in tests/test_tax.py.", ["tests/test_tax.py"]),
        ("Somewhere the VAT rate is wrong. Find it and fix it.", []),
        ("Rename f everywhere: it is defined in users.py.", []),
        ("Make tests/test_cart.py pass.", []),
        ("Account.withdraw must raise ValueError, e.g. for self.total.", []),
    ],
)
def test_the_files_that_a_request_names(request_, expected):
    assert named_files(request_, FILES) == expected


def test_a_new_path_is_one_that_does_not_exist_and_looks_like_a_file():
    assert named_paths("Put it into shop/vat.py, not into shop/tax.py, as Tax.rate does in v1.2.", FILES) == [
        "shop/vat.py"
    ]


def start(request_):
    conversation = Conversation(SystemMessage("x"))
    conversation.append(UserMessage("The project", "harness"))
    conversation.append(UserMessage(request_))
    return conversation


def did(conversation, name, arguments, content):
    conversation.append(AgentMessage(calls=(ToolCall(id=name, name=name, arguments=arguments),)))
    conversation.append(ToolMessage(name, name, content))


def test_a_plain_change_reads_first_and_plans_then():
    conversation = start("Fix shop/cart.py.")
    move = planner_move(conversation, PlanBoard(), FILES, 0, Path("/nowhere"))
    assert move.forced.name == "classify_request"
    did(conversation, "classify_request", '{"kind": "change"}', "ok")
    move = planner_move(conversation, PlanBoard(), FILES, 0, Path("/nowhere"))
    assert sorted(move.calls) == ["read_file", "search"]
    assert not move.speech
    did(conversation, "read_file", '{"path": "shop/cart.py"}', "1| x")
    move = planner_move(conversation, PlanBoard(), FILES, 0, Path("/nowhere"))
    steps = move.calls["write_implementation_plan"]["properties"]["steps"]
    assert steps["items"]["properties"]["files"]["items"]["enum"] == ["shop/cart.py"]
    assert steps["maxItems"] == 1


def test_a_question_may_be_answered_and_never_planned():
    conversation = start("Where is the tax computed?")
    did(conversation, "classify_request", '{"kind": "question"}', "ok")
    move = planner_move(conversation, PlanBoard(), FILES, 0, Path("/nowhere"))
    assert move.speech
    assert "write_implementation_plan" not in move.calls
    assert "spawn_subagent" not in move.calls


def test_a_name_that_can_only_be_code_leads_to_the_file_that_defines_it(tmp_path):
    (tmp_path / "client.py").write_text("MAX_RETRIES = 3\n")
    (tmp_path / "main.py").write_text("from client import MAX_RETRIES\n\nprint(MAX_RETRIES)\n")
    files = ["main.py", "client.py"]
    assert defining_files("MAX_RETRIES must be 5 instead of 3.", files, tmp_path) == ["client.py"]
    assert defining_files("The retries must be 5.", files, tmp_path) == []


def test_every_file_that_something_is_moved_between_gets_a_step():
    request_ = "Move total from shop/cart.py to shop/tax.py."
    assert concerns_all(request_)
    conversation = start(request_)
    did(conversation, "classify_request", '{"kind": "change"}', "ok")
    did(conversation, "read_file", '{"path": "shop/cart.py"}', "1| x")
    move = planner_move(conversation, PlanBoard(), FILES, 0, Path("/nowhere"))
    steps = move.calls["write_implementation_plan"]["properties"]["steps"]["prefixItems"]
    paths = [step["properties"]["files"]["items"]["const"] for step in steps]
    assert paths == ["shop/cart.py", "shop/tax.py"]


def test_a_new_method_goes_behind_the_last_one_of_its_class():
    code = "class A:\n    def f(self):\n        pass\n\n    def g(self):\n        pass\n\n\ndef h():\n    pass\n"
    found = symbols_of(code, "python")
    name, anchor = insertion_point("Add a method low(limit) to the class A in a.py.", found)
    assert (name, anchor.name) == ("low", "A.g")
    name, anchor = insertion_point("Add a function called `top` to a.py.", found)
    assert (name, anchor.name) == ("top", "h")
    assert insertion_point("Add a method g to the class A.", found) is None
    assert insertion_point("Fix g.", found) is None
