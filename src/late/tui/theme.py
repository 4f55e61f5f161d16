"""Late's colours: Textual themes for the widgets, and the same colours as Rich styles for what is drawn by line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.style import Style
from textual.theme import Theme

if TYPE_CHECKING:
    from collections.abc import Mapping

DARK = Theme(
    name="late-dark",
    primary="#6fbfb2",
    secondary="#8fa8e0",
    accent="#e0b070",
    warning="#e0b070",
    error="#ea8585",
    success="#8cc68f",
    foreground="#d6dce3",
    background="#11151a",
    surface="#191f26",
    panel="#252d36",
    dark=True,
    variables={
        "late-muted": "#8a96a3",
        "input-selection-background": "#8fa8e0 35%",
        "scrollbar": "#313b46",
        "scrollbar-hover": "#475462",
        "scrollbar-active": "#6fbfb2",
        "scrollbar-background": "#11151a",
        "scrollbar-background-hover": "#11151a",
        "scrollbar-background-active": "#11151a",
    },
)
LIGHT = Theme(
    name="late-light",
    primary="#0f7268",
    secondary="#3a57ab",
    accent="#8f5600",
    warning="#8f5600",
    error="#b0332c",
    success="#2c7536",
    foreground="#23292f",
    background="#fbfaf7",
    surface="#f1efe9",
    panel="#dedbd2",
    dark=False,
    variables={
        "late-muted": "#5d6771",
        "input-selection-background": "#3a57ab 25%",
        "scrollbar": "#cbc7bc",
        "scrollbar-hover": "#aaa598",
        "scrollbar-active": "#0f7268",
        "scrollbar-background": "#fbfaf7",
        "scrollbar-background-hover": "#fbfaf7",
        "scrollbar-background-active": "#fbfaf7",
    },
)
ANSI = Theme(
    name="late-ansi",
    ansi=True,
    primary="ansi_cyan",
    secondary="ansi_blue",
    accent="ansi_yellow",
    warning="ansi_yellow",
    error="ansi_red",
    success="ansi_green",
    foreground="ansi_default",
    background="ansi_default",
    surface="ansi_default",
    panel="ansi_default",
    boost="ansi_default",
    dark=True,
    luminosity_spread=0.15,
    text_alpha=1,
    variables={
        "late-muted": "ansi_bright_black",
        "ansi-background": "ansi_black",
        "ansi-foreground": "ansi_white",
        "border": "ansi_cyan",
        "border-blurred": "ansi_bright_black",
        "input-cursor-background": "ansi_default",
        "input-cursor-foreground": "ansi_default",
        "input-selection-background": "ansi_blue",
        "input-selection-foreground": "ansi_default",
        "scrollbar": "ansi_bright_black",
        "scrollbar-hover": "ansi_bright_black",
        "scrollbar-active": "ansi_cyan",
        "scrollbar-background": "ansi_default",
        "scrollbar-background-hover": "ansi_default",
        "scrollbar-background-active": "ansi_default",
        "scrollbar-corner-color": "ansi_default",
    },
)
"""Only the terminal's own sixteen colours, for terminals and people that bring their own scheme."""

THEMES = (DARK, LIGHT, ANSI)


def theme_named(short: str) -> str | None:
    """The theme that a person calls `dark`, `light` or `ansi`."""
    asked = f"late-{short.lower()}"
    return asked if any(theme.name == asked for theme in THEMES) else None


def chosen_theme(environ: Mapping[str, str]) -> str:
    """The theme's name by `LATE_THEME` (`dark`, `light` or `ansi`), else by the background that `COLORFGBG` tells."""
    if asked := theme_named(environ.get("LATE_THEME", "")):
        return asked
    background = environ.get("COLORFGBG", "").rpartition(";")[2]
    return LIGHT.name if background in {"7", "15"} else DARK.name


@dataclass(frozen=True, slots=True)
class Palette:
    """A theme as Rich styles. `*_ground` styles only set a background."""

    name: str
    text: Style
    muted: Style
    faint: Style
    """Rules and bars."""
    strong: Style
    primary: Style
    secondary: Style
    accent: Style
    success: Style
    warning: Style
    error: Style
    user_ground: Style
    code_ground: Style
    code: Style
    """Code inside a sentence."""
    added: Style
    removed: Style
    added_ground: Style
    removed_ground: Style
    selection: Style


def palette_of(theme: Theme) -> Palette:
    """The styles that belong to a theme, also to one that is not ours."""
    if theme.ansi:
        return _ansi_palette(theme)
    foreground = theme.foreground or ("#dddddd" if theme.dark else "#222222")
    background = theme.background or ("#111111" if theme.dark else "#fafafa")
    surface = theme.surface or background
    panel = theme.panel or surface
    accent = theme.accent or theme.primary
    success = theme.success or foreground
    error = theme.error or foreground
    return Palette(
        name=theme.name,
        text=Style(color=foreground),
        muted=Style(color=theme.variables.get("late-muted") or _mix(foreground, background, 0.42)),
        faint=Style(color=_mix(panel, foreground, 0.16)),
        strong=Style(color=foreground, bold=True),
        primary=Style(color=theme.primary),
        secondary=Style(color=theme.secondary or theme.primary),
        accent=Style(color=accent),
        success=Style(color=success),
        warning=Style(color=theme.warning or accent),
        error=Style(color=error),
        user_ground=Style(bgcolor=surface),
        code_ground=Style(bgcolor=surface),
        code=Style(color=accent),
        added=Style(color=success),
        removed=Style(color=error),
        added_ground=Style(bgcolor=_mix(background, success, 0.13)),
        removed_ground=Style(bgcolor=_mix(background, error, 0.13)),
        selection=Style(bgcolor=_mix(background, theme.secondary or theme.primary, 0.35)),
    )


def _ansi_palette(theme: Theme) -> Palette:
    nothing = Style()
    return Palette(
        name=theme.name,
        text=nothing,
        muted=Style(dim=True),
        faint=Style(color="bright_black"),
        strong=Style(bold=True),
        primary=Style(color="cyan"),
        secondary=Style(color="blue"),
        accent=Style(color="yellow"),
        success=Style(color="green"),
        warning=Style(color="yellow"),
        error=Style(color="red"),
        user_ground=nothing,
        code_ground=nothing,
        code=Style(color="yellow"),
        added=Style(color="green"),
        removed=Style(color="red"),
        added_ground=nothing,
        removed_ground=nothing,
        selection=Style(reverse=True),
    )


def _mix(base: str, other: str, share: float) -> str:
    from textual.color import Color

    return Color.parse(base).blend(Color.parse(other), share).hex
