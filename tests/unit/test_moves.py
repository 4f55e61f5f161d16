"""What a led model may do next, and which files a request is about."""

import pytest

from late.agent.board import PlanBoard
from late.agent.moves import named_files, named_paths, planner_move
from late.events import ToolCall
from late.llm.messages import AgentMessage, Conversation, SystemMessage, ToolMessage, UserMessage

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
    move = planner_move(conversation, PlanBoard(), FILES, 0)
    assert move.forced.name == "classify_request"
    did(conversation, "classify_request", '{"kind": "change"}', "ok")
    move = planner_move(conversation, PlanBoard(), FILES, 0)
    assert sorted(move.calls) == ["read_file", "search"]
    assert not move.speech
    did(conversation, "read_file", '{"path": "shop/cart.py"}', "1| x")
    move = planner_move(conversation, PlanBoard(), FILES, 0)
    steps = move.calls["write_implementation_plan"]["properties"]["steps"]
    assert steps["items"]["properties"]["files"]["items"]["enum"] == ["shop/cart.py"]
    assert steps["maxItems"] == 1


def test_a_question_may_be_answered_and_never_planned():
    conversation = start("Where is the tax computed?")
    did(conversation, "classify_request", '{"kind": "question"}', "ok")
    move = planner_move(conversation, PlanBoard(), FILES, 0)
    assert move.speech
    assert "write_implementation_plan" not in move.calls
    assert "spawn_subagent" not in move.calls
