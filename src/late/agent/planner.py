"""The planner: the root agent, which reads, plans and hands out work."""

from __future__ import annotations

from late.agent.crew import Crew
from late.agent.loop import Agent, Move, TurnsEnd, run_turns
from late.agent.moves import planner_move
from late.events import PLANNER, Event, PlanDecided
from late.llm.messages import UserMessage
from late.llm.provider import Legal, ModelInfo
from late.workspace.area import area_of
from late.workspace.outline import workspace_map
from late.workspace.relevance import rank_files
from late.workspace.ripgrep import list_files

MAP_CHARS = 1_000
"""The overview of the project in a first message. A third of it is prefilled in a second on a laptop."""
WEAK_MAP_CHARS = 3_000
"""A weak model finds its files by this overview alone."""
WEAK_PLAN_TOKENS, WEAK_SPEECH_TOKENS = 900, 400
"""A weak model that does not find an end must not take minutes to be stopped."""
MOST_REMINDERS = 2
"""In a row and without any step taken, before the planner's silence is accepted."""
SHORT_REQUEST = 40
"""Characters below which a message ("yes, do it") is given to coders together with the ones before it."""


class Planner:
    """The root agent of a session, with what it has to be told and reminded of."""

    def __init__(self, crew: Crew, info: ModelInfo) -> None:
        self.crew = crew
        self.info = info
        crew.narrow = info.weak
        self.is_new = PLANNER not in crew.records
        self.agent: Agent = crew.make_agent(PLANNER, crew.role("planner", info.weak), info)
        self._files: list[str] = []
        self._ranked: list[str] = []
        self._decided = 0
        if info.weak:
            self.agent.next_move = self._move
            self.agent.runner.reminder = lambda: f"The person asked: {crew.request}"

    def observe(self, event: Event) -> None:
        """Count the plans that were decided on since the person's last message."""
        if isinstance(event, PlanDecided):
            self._decided += 1

    async def run(self) -> TurnsEnd:
        """Work until the planner has answered and no approved step of this run is left behind."""
        if self.info.weak:
            self._files = await list_files(area_of(self.crew.workspace, "."))
        if self.is_new:
            self.is_new = False
            self.agent.tell(self.crew.overview or await overview(self.crew, self.info), "harness")
        start = (self.crew.board.approved_hash, dict(self.crew.board.states))
        reminders = 0
        while True:
            before = dict(self.crew.board.states)
            self._take_messages()
            end = await run_turns(self.agent)
            board = self.crew.board
            if end.reason != "answered" or self.info.weak:
                return end
            carried_on = (board.approved_hash, board.states) != start
            if self.agent.inbox.waiting:
                continue
            if not carried_on or not board.pending:
                return end
            reminders = 1 if board.states != before else reminders + 1
            if reminders > MOST_REMINDERS:
                return end
            steps = ", ".join(f"{number} ({board.step(number).title})" for number in board.pending)
            self.agent.tell(
                f"Approved steps are still pending: {steps}. Spawn a coder for step {board.pending[0]} now.", "harness"
            )

    def _take_messages(self) -> None:
        if any(source == "person" for _, _, source in self.agent.inbox.waiting):
            self._decided = 0
        self.crew.request = self.request()
        if self.info.weak:
            self._ranked = rank_files(self.crew.request, self._files, self.crew.workspace.root)

    def request(self) -> str:
        """What the person asked for, word for word: the last message, with those before it while it is too short."""
        waiting = [text for _, text, source in self.agent.inbox.waiting if source == "person"]
        said = [
            message.text
            for message in self.agent.conversation.messages
            if isinstance(message, UserMessage) and message.source == "person"
        ]
        texts = [*said, *waiting]
        request = texts[-1] if texts else ""
        for earlier in reversed(texts[-3:-1]):
            if len(request) >= SHORT_REQUEST:
                break
            request = f"{earlier}\n\n{request}"
        return request

    def _move(self) -> Move:
        crew = self.crew
        move = planner_move(self.agent.conversation, crew.board, self._ranked, self._decided, crew.workspace.root)
        speaks = isinstance(move, Legal) and move.speech
        self.agent.max_tokens = WEAK_SPEECH_TOKENS if speaks else WEAK_PLAN_TOKENS
        return move


async def overview(crew: Crew, info: ModelInfo) -> str:
    """What the planner is told of the project before the first message."""
    files = await list_files(area_of(crew.workspace, "."))
    text = workspace_map(files, crew.workspace.root, WEAK_MAP_CHARS if info.weak else MAP_CHARS)
    return f"The project:\n{text}" if text.strip() else "The project's folder is empty."
