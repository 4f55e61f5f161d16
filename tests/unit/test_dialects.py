"""How calls travel: what each dialect sends, and what it reads out of answers."""

import json

import pytest

from late.events import ToolCall
from late.llm.dialects.constrained import ConstrainedDialect, JsonDecoder
from late.llm.dialects.native import NativeDialect
from late.llm.dialects.plain import PlainDialect, code_calls, fences
from late.llm.dialects.repetition import Repetition
from late.llm.messages import AgentMessage, SystemMessage, ToolMessage, UserMessage
from late.llm.provider import CallFragment, Completed, EditTarget, Legal, Text, ToolSpec, TurnRequest

READ = ToolSpec(
    "read_file", "Read a file.", {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
)
WRITE = ToolSpec("write_file", "Write a file.", {"type": "object", "properties": {}, "required": []})


def request(*messages, **more):
    return TurnRequest(messages=[SystemMessage("You are it."), *messages], tools=[READ, WRITE], **more)


def call(arguments='{"path": "a"}', name="read_file", id_="c1"):
    return ToolCall(id=id_, name=name, arguments=arguments)


class TestNative:
    def test_arguments_that_are_no_json_are_sent_as_an_empty_object(self):
        body = NativeDialect().body(
            request(
                UserMessage("x"), AgentMessage(calls=(call('{"path": '),)), ToolMessage("c1", "read_file", "bad JSON")
            )
        )
        assert body["messages"][2]["tool_calls"][0]["function"]["arguments"] == "{}"
        assert body["messages"][3] == {"role": "tool", "tool_call_id": "c1", "content": "bad JSON"}

    def test_valid_arguments_are_replayed_as_they_were_received(self):
        arguments = '{"path" :  "a"}'
        body = NativeDialect().body(request(AgentMessage(calls=(call(arguments),)), ToolMessage("c1", "read_file", "")))
        assert body["messages"][1]["tool_calls"][0]["function"]["arguments"] == arguments

    def test_a_call_without_a_result_gets_one_and_a_result_without_a_call_is_left_out(self):
        body = NativeDialect().body(
            request(
                ToolMessage("c9", "read_file", "orphan"),
                AgentMessage(calls=(call(), call(id_="c2"))),
                ToolMessage("c1", "read_file", "one"),
                UserMessage("next"),
            )
        )
        assert [(m["role"], m.get("tool_call_id")) for m in body["messages"][1:]] == [
            ("assistant", None),
            ("tool", "c1"),
            ("tool", "c2"),
            ("user", None),
        ]

    def test_an_empty_assistant_message_is_never_sent(self):
        body = NativeDialect().body(request(UserMessage("x"), AgentMessage(), UserMessage("y")))
        assert [m["role"] for m in body["messages"]] == ["system", "user"]

    def test_thinking_goes_back_only_where_the_endpoint_takes_it(self):
        messages = request(AgentMessage(text="a", reasoning="because"))
        assert NativeDialect(keep_reasoning=True).body(messages)["messages"][1]["reasoning_content"] == "because"
        assert "reasoning_content" not in NativeDialect().body(messages)["messages"][1]


class TestConstrained:
    def test_only_what_is_legal_can_be_generated(self):
        legal = Legal({"read_file": {"type": "object", "properties": {"path": {"enum": ["a.py"]}}}}, speech=False)
        schema = ConstrainedDialect().body(request(UserMessage("x"), legal=legal))["response_format"]["json_schema"]
        assert schema["schema"]["properties"]["name"] == {"const": "read_file"}
        assert schema["schema"]["properties"]["arguments"]["properties"]["path"] == {"enum": ["a.py"]}

    def test_the_legal_set_does_not_touch_the_prompt(self):
        one = ConstrainedDialect().body(request(UserMessage("x"), legal=Legal({}, speech=True)))
        two = ConstrainedDialect().body(request(UserMessage("x"), legal=Legal({"read_file": READ.parameters})))
        assert one["messages"] == two["messages"]
        assert one["response_format"] != two["response_format"]

    def test_an_answer_is_replayed_byte_for_byte(self):
        raw = '{ "name":"read_file","arguments": {"path":"a"}}'
        decoded = JsonDecoder().finish(Completed(text=raw))
        message = AgentMessage(decoded.text, calls=decoded.calls, raw=decoded.raw)
        body = ConstrainedDialect().body(request(message, ToolMessage(decoded.calls[0].id, "read_file", "1| x")))
        assert body["messages"][1] == {"role": "assistant", "content": raw}
        assert body["messages"][2] == {"role": "user", "content": "Result of read_file:\n1| x"}

    @pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
    def test_speech_is_shown_while_it_streams_however_it_is_split(self, size):
        said = 'Zeile "eins"\n\u4f60\U0001f980 \\ ende'
        raw = json.dumps({"say": said})
        decoder = JsonDecoder()
        shown = [
            item.text
            for at in range(0, len(raw), size)
            for item in decoder.feed(Text(raw[at : at + size]))
            if isinstance(item, Text)
        ]
        assert "".join(shown) == said
        assert decoder.finish(Completed(text=raw)).text == said

    @pytest.mark.parametrize("size", [1, 5, 1000])
    def test_a_call_is_shown_while_it_streams(self, size):
        raw = '{"name": "read_file", "arguments": {"path": "a"}}'
        decoder = JsonDecoder()
        items = [item for at in range(0, len(raw), size) for item in decoder.feed(Text(raw[at : at + size]))]
        assert "".join(item.name for item in items if isinstance(item, CallFragment)) == "read_file"
        shown = "".join(item.arguments for item in items if isinstance(item, CallFragment))
        assert shown.strip().startswith('{"path": "a"}')

    def test_speech_that_runs_in_circles_is_stopped_and_kept(self):
        decoder = JsonDecoder()
        line = "The same sentence again and again.\\n"
        for item in ['{"say": "', *[line] * 20]:
            list(decoder.feed(Text(item)))
        assert decoder.stop()
        done = decoder.finish(Completed(text='{"say": "' + line * 20, finish="repetition"))
        assert done.text.startswith("The same sentence")
        assert (done.finish, json.loads(done.raw)["say"]) == ("stop", done.text)

    def test_a_cut_answer_has_no_call(self):
        done = JsonDecoder().finish(Completed(text='{"name": "read_file", "argum', finish="length"))
        assert done.calls == ()
        assert done.finish == "length"


class TestPlain:
    def test_a_turn_for_code_is_free_text_and_every_other_is_constrained(self):
        code = PlainDialect().body(
            request(UserMessage("x"), legal=Legal({}, speech=False, edit=EditTarget("a.py", "")))
        )
        talk = PlainDialect().body(request(UserMessage("x"), legal=Legal({}, speech=True)))
        assert "response_format" not in code
        assert "response_format" in talk
        assert code["messages"] == talk["messages"]

    @pytest.mark.parametrize(
        "answer",
        [
            "a.py\n```python\nx = 1\n```",
            "Here it is:\n\n**a.py**\n\n```python\nx = 1\n```\nDone.",
            "`a.py`:\n```\nx = 1\n```",
            "File: a.py\n```py\nx = 1\n```",
            "```python a.py\nx = 1\n```",
            "```a.py\nx = 1\n```",
            "```python\n# a.py\nx = 1\n```",
            "```python\nx = 1\n```",
            "~~~\nx = 1\n~~~",
            "### ./a.py\n````python\nx = 1\n````",
            "```\na.py\n```python\nx = 1\n```\n```",
            "```\na.py\n\n```python\nx = 1\n```\n",
        ],
    )
    def test_a_fence_is_read_however_it_comes(self, answer):
        assert code_calls(answer, EditTarget("a.py", "x = 0\n")) == [
            ("write_file", {"path": "a.py", "content": "x = 1\n"})
        ]

    def test_the_block_for_the_file_in_scope_is_taken_among_several(self):
        answer = "b.py\n```python\ny = 2\n```\na.py\n```python\nx = 1\n```\n"
        assert code_calls(answer, EditTarget("a.py", ""))[0][1]["content"] == "x = 1\n"

    def test_a_block_for_another_file_alone_among_named_ones_changes_nothing(self):
        answer = "b.py\n```python\ny = 2\n```\nc.py\n```python\nz = 1\n```\n"
        assert code_calls(answer, EditTarget("a.py", "")) == []

    def test_search_and_replace_pairs_become_edits(self):
        answer = "a.py\n```\n<<<<<<< SEARCH\nx = 0\n=======\nx = 1\n>>>>>>> REPLACE\n```"
        assert code_calls(answer, EditTarget("a.py", "x = 0\n")) == [
            ("target_edit", {"path": "a.py", "search": "x = 0", "replace": "x = 1"})
        ]

    def test_a_symbol_keeps_its_indentation(self):
        region = "    def f(self):\n        return 1\n"
        target = EditTarget("a.py", f"class A:\n{region}", region)
        (name, arguments), *rest = code_calls("```python\ndef f(self):\n    return 2\n```", target)
        assert (name, rest) == ("target_edit", [])
        assert arguments["search"] == region
        assert arguments["replace"] == "    def f(self):\n        return 2\n"

    def test_new_code_goes_behind_the_symbol_also_when_it_comes_inside_of_its_class(self):
        region = "    def f(self):\n        return 1\n"
        target = EditTarget("a.py", f"class A:\n{region}", region, insert=True)
        answer = "```python\nclass A:\n    def g(self):\n        return 2\n```"
        replace = "    def f(self):\n        return 1\n\n    def g(self):\n        return 2\n"
        assert code_calls(answer, target) == [("target_edit", {"path": "a.py", "search": region, "replace": replace})]

    def test_imports_before_a_symbol_go_to_the_top_of_the_file(self):
        region = "def f():\n    return 1\n"
        target = EditTarget("a.py", f"import os\n\n\n{region}", region)
        answer = "```python\nimport os\nimport re\n\ndef f():\n    return re\n```"
        assert code_calls(answer, target) == [
            ("target_edit", {"path": "a.py", "search": "import os", "replace": "import re\nimport os"}),
            ("target_edit", {"path": "a.py", "search": region, "replace": "def f():\n    return re\n"}),
        ]

    def test_a_block_that_is_never_closed_is_none(self):
        assert fences("a.py\n```python\nx = 1\n") == []

    def test_a_markdown_file_with_fences_inside_is_read_whole(self):
        answer = "README.md\n```markdown\n# T\n\n```bash\nmake\n```\n\nend\n```\n"
        assert fences(answer)[0].text == "# T\n\n```bash\nmake\n```\n\nend\n"

    def test_an_answer_for_code_ends_the_coders_work(self):
        decoder = PlainDialect().decoder(request(legal=Legal({}, speech=False, edit=EditTarget("a.py", ""))))
        done = decoder.finish(Completed(text="a.py\n```\nx\n```"))
        assert done.final
        assert json.loads(done.calls[0].arguments) == {"path": "a.py", "content": "x\n"}
        cut = decoder.finish(Completed(text="a.py\n```\nx\n```", finish="length"))
        assert cut.calls == ()


class TestRepetition:
    def test_an_answer_in_circles_is_noticed(self):
        repetition = Repetition()
        for _ in range(12):
            repetition.feed("    if value is None:\n        return the_same_thing\n")
        assert repetition.found

    def test_tables_and_closing_brackets_are_not_circles(self):
        repetition = Repetition()
        repetition.feed("".join(f'    "{n}": {n},\n' for n in range(200)) + "}\n" * 30 + "\n" * 30)
        assert not repetition.found
