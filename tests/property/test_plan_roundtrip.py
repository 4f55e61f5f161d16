"""A plan survives being written to a file and read back, whatever its texts hold."""

from hypothesis import example, given
from hypothesis import strategies as st

from late.agent.plan import normalise, parse_plan, plan_hash, render_plan
from late.events import Plan, PlanStep

text = st.text(st.characters(codec="utf-8"), max_size=120)
tricky = st.sampled_from(
    [
        "## Steps",
        "- [ ] 1. not a step",
        "# x",
        "\\# x",
        "  Files: `a`",
        "Files: `a`",
        "Verify: x",
        "```",
        "a\n\n  b",
        "`x`",
        "",
    ]
)
words = st.lists(text | tricky, max_size=4).map("\n".join)
steps = st.builds(
    PlanStep,
    title=text | tricky,
    files=st.lists(text | tricky, max_size=3).map(tuple),
    instruction=words,
    verify=st.none() | text | tricky,
)
plans = st.builds(Plan, title=text | tricky, summary=words, steps=st.lists(steps, min_size=1, max_size=4).map(tuple))


@given(plans)
@example(Plan(title="1. x", steps=(PlanStep(title="2. y", instruction="Files: `a`"),)))
def test_a_rendered_plan_reads_back_as_the_same_plan(plan):
    again = parse_plan(render_plan(plan))
    assert again == normalise(plan)
    assert plan_hash(again) == plan_hash(plan)


@given(plans, st.data())
def test_checkboxes_do_not_change_what_was_approved(plan, data):
    states = [data.draw(st.sampled_from(["pending", "done", "unverified", "failed"])) for _ in plan.steps]
    assert parse_plan(render_plan(plan, states)) == normalise(plan)
