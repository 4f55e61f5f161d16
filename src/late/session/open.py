"""Putting a session together: the one place where settings become providers, tools and agents."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Literal

from late.agent.crew import Crew, Limits
from late.agent.desk import Desk
from late.agent.roles import Role, load_role
from late.agent.subagents import Subagents
from late.config.models import ModelMemory
from late.config.paths import data_dir
from late.config.settings import Endpoint, Settings
from late.llm.chat import ChatProvider
from late.llm.probe import DialectChooser, choose_dialect
from late.llm.provider import DialectName
from late.llm.transport import ServerInfo, Transport
from late.policy.approvals import Approvals
from late.policy.gate import Policy
from late.session.session import Session
from late.session.store import SessionStore
from late.tools.base import Tool
from late.tools.bash import Bash
from late.tools.classify_request import ClassifyRequest
from late.tools.list_files import ListFiles
from late.tools.outline import Outline
from late.tools.read_file import ReadFile
from late.tools.search import Search
from late.tools.spawn_subagent import SpawnSubagent
from late.tools.target_edit import TargetEdit
from late.tools.write_file import WriteFile
from late.tools.write_implementation_plan import WriteImplementationPlan
from late.workspace.process import clean_environment
from late.workspace.snapshots import Snapshots
from late.workspace.workspace import Workspace

Who = Literal["main", "subagent"]


def open_session(
    settings: Settings, directory: Path, *, resume: str | None = None, store: SessionStore | None = None
) -> Session:
    """A new session in a directory, or the one of that id as its log has it.

    Raises:
        UserError: the session is unknown, or another process has it open.
        StoreError: the log cannot be opened.
    """
    store = store or SessionStore(data_dir() / "sessions.db")
    session = Session(store, directory, session_id=resume)
    workspace = Workspace(directory)
    approvals = Approvals(workspace.root, data_dir() / "approvals")
    memory = ModelMemory(data_dir() / "models.json")
    planner_provider = _provider(settings, "main", memory)
    same = settings.local or settings.main == settings.subagent
    crew = Crew(
        workspace=workspace,
        policy=Policy(workspace, approvals),
        approvals=approvals,
        approver=session,
        publish=session.publish,
        planner_provider=planner_provider,
        subagent_provider=planner_provider if same else _provider(settings, "subagent", memory),
        limits=Limits(
            planner_turns=settings.planner_max_turns,
            subagent_turns=settings.subagent_max_turns,
            check_timeout_s=settings.check_timeout_s,
            output_share=settings.output_share,
            temperature=settings.temperature,
        ),
        log_dir=data_dir() / "output",
        environment=clean_environment(os.environ),
        role=partial(_role, settings, workspace.root),
        snapshots=Snapshots(workspace.root, data_dir() / "snapshots"),
        session_id=lambda: session.id or "",
        toolbox=lambda name: tools.get(name),  # noqa: PLW0108 -- the tools need the crew and come after it
    )
    desk = Desk(crew)
    subagents = Subagents(crew, desk)
    tools = _tools(settings, desk, subagents)
    session.equip(crew, subagents)
    return session


def _tools(settings: Settings, desk: Desk, subagents: Subagents) -> dict[str, Tool]:
    tools: list[Tool] = [
        ReadFile(),
        Search(),
        Outline(),
        ListFiles(),
        WriteFile(),
        TargetEdit(),
        WriteImplementationPlan(desk),
        ClassifyRequest(),
    ]
    if settings.enable_bash:
        tools.append(Bash(int(settings.bash_timeout_s)))
    if settings.enable_subagents:
        tools.append(SpawnSubagent(subagents))
    return {tool.name: tool for tool in tools}


def _role(settings: Settings, directory: Path, name: str, led: bool) -> Role:
    """Prompt settings are for the planner: a subagent's prompt belongs to its job."""
    if name != "planner":
        return load_role(name, directory, led=led)
    append = settings.append_system_prompt or ""
    return load_role(name, directory, led=led, override=settings.system_prompt, append=append)


def _provider(settings: Settings, who: Who, memory: ModelMemory) -> ChatProvider:
    return ChatProvider(_transport(settings, who), _chooser(settings, who, memory), window=settings.context_window)


def _transport(settings: Settings, who: Who) -> Transport:
    if settings.local:
        from late.llm.local import open_local

        return open_local(settings.local_model)
    from late.llm.openai import OpenAITransport

    endpoint: Endpoint = settings.main if who == "main" else settings.subagent
    key = endpoint.api_key.get_secret_value() if endpoint.api_key else None
    return OpenAITransport(endpoint.base_url, key, endpoint.model)


def _chooser(settings: Settings, who: Who, memory: ModelMemory) -> DialectChooser:
    """The dialect of the settings, else the remembered one, else a probe's."""

    async def choose(transport: Transport, server: ServerInfo) -> DialectName:
        setting = settings.dialect_for(who, server.model)
        known = memory.get(server.endpoint, server.model) if setting == "auto" else None
        if known and known.get("dialect") in ("native", "constrained", "plain"):
            return known["dialect"]
        found = await choose_dialect(transport, server, setting)
        if setting == "auto":
            memory.put(server.endpoint, server.model, {"dialect": found})
        return found

    return choose
