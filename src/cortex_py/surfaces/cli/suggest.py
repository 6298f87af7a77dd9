"""`cortex suggest` and `cortex automation`: suggestions, answers to them, and the plan that follows from those."""

from __future__ import annotations

import sys

import click

from ...core.clock import ID_LENGTH
from ...core.errors import InvalidInput
from ...parts.suggest.automation import ACTIONS
from ...parts.suggest.sessions import SuggestionSession
from .options import CommandSession, command, with_session
from .output import SHORT_ID, counted, note, print_json, print_table, say, score_colour

__all__ = ["automation_command", "suggest_command"]


@command("suggest")
@click.argument("task", required=False)
@click.option("-k", "--top-k", type=int, default=5, show_default=True, help="How many at most.")
@click.option("--accept", "accepted", metavar="SESSION", help="Take suggestions of a session; those that -c names.")
@click.option("-c", "--context", "contexts", multiple=True, help="The id of one that is taken; repeat for more.")
@click.option("--reject", "rejected", metavar="SESSION", help="Take none of a session's suggestions.")
@click.option("--reason", help="Why none of them fits.")
@click.option("--history", type=int, metavar="N", help="Only show the last N references.")
@with_session
def suggest_command(
    task: str | None,
    top_k: int,
    accepted: str | None,
    contexts: tuple[str, ...],
    rejected: str | None,
    reason: str | None,
    history: int | None,
    session: CommandSession,
) -> None:
    """Suggest what TASK will need; on a terminal, ask which of it is taken."""
    if sum(value is not None for value in (task, accepted, rejected, history)) != 1:
        raise InvalidInput("One of TASK, --accept, --reject and --history is needed.", remedy="Give one.", field="task")
    with session.open(needs_model=True) as cortex:
        suggestions = cortex.suggestions
        if accepted is not None:
            count = suggestions.accept(accepted, contexts)
            session.show({"accepted_count": count}, f"{counted(count, 'suggestion')} taken.")
        elif rejected is not None:
            kinds = suggestions.reject(rejected, reason or "")
            session.show({"understood": list(kinds)}, f"Understood: {', '.join(kinds) or 'nothing was suggested'}.")
        elif history is not None:
            rows = suggestions.history(limit=history)
            if session.as_json:
                print_json(rows)
            else:
                print_table(
                    ("memory", "how", "line of work", "task"),
                    [(one.memory_id[:SHORT_ID], one.kind, one.branch_id or "-", one.task) for one in rows],
                    wide=3,
                    empty="Nothing was suggested or used yet.",
                )
        else:
            found = suggestions.suggest(task or "", top_k=top_k)
            if session.shown_as_json(found):
                return
            _print(found)
            if found.suggestions and sys.stdin.isatty() and sys.stdout.isatty():
                _ask(found, suggestions.accept, suggestions.reject)


def _print(found: SuggestionSession) -> None:
    rows = [
        (str(place), f"{one.confidence:.2f}", short, one.reason, _line(one.memory.content))
        for place, (one, short) in enumerate(zip(found.suggestions, _short(found), strict=True), 1)
    ]
    print_table(
        ("", "sure", "memory", "why", "content"),
        rows,
        wide=(3, 4),
        empty="Nothing fits this task yet.",
        tint={1: score_colour},
    )
    if rows:
        answers = f"cortex suggest --accept {found.session_id} -c ID, or --reject {found.session_id} --reason TEXT"
        note(f"Answer within half an hour: {answers}")
    for one in found.pending:
        note(f"Still unanswered: {one.session_id} ({one.task})")


def _short(found: SuggestionSession) -> list[str]:
    """Ids, as short as they can be and still differ: those of notes made together begin alike."""
    ids = [one.memory.id for one in found.suggestions]
    length = next((n for n in range(SHORT_ID, ID_LENGTH) if len({one[:n] for one in ids}) == len(ids)), ID_LENGTH)
    return [one[:length] for one in ids]


def _ask(found: SuggestionSession, accept, reject) -> None:  # type: ignore[no-untyped-def]
    """Keys of a person: numbers take those, "a" all, "n" none with a reason, Enter leaves it open."""
    answer = click.prompt("Take which? (numbers, a = all, n = none, Enter = later)", default="", show_default=False)
    chosen = answer.replace(",", " ").split()
    if not chosen:
        return
    if chosen == ["n"]:
        say(f"Understood: {', '.join(reject(found.session_id, click.prompt('Why')))}.")
        return
    places = (
        range(1, len(found.suggestions) + 1) if chosen == ["a"] else [int(one) for one in chosen if one.isdecimal()]
    )
    ids = [found.suggestions[place - 1].memory.id for place in places if 1 <= place <= len(found.suggestions)]
    say(f"{counted(accept(found.session_id, ids, by_hand=True), 'suggestion')} taken.")


@command("automation")
@click.option("--confirm", is_flag=True, help="Let happen what waits for a yes.")
@click.option("--refuse", is_flag=True, help="Keep what waits for a yes from happening, for good.")
@click.option("--right", type=click.Choice(ACTIONS), help="Something that was done unasked was right.")
@click.option("--wrong", type=click.Choice(ACTIONS), help="Something that was done unasked was not.")
@with_session
def automation_command(
    confirm: bool, refuse: bool, right: str | None, wrong: str | None, session: CommandSession
) -> None:
    """Show whether automatic behaviour acts (plan A) or asks first (plan B), and what waits for an answer."""
    if confirm and refuse:
        raise InvalidInput("Both --confirm and --refuse are given.", remedy="Give one.", field="confirm")
    with session.open() as cortex:
        suggestions = cortex.suggestions
        if refuse:
            left = suggestions.refuse()
            session.show({"refused": list(left)}, f"Left where they are: {', '.join(left) or 'nothing waited'}.")
            return
        if confirm:
            done = suggestions.confirm()
            session.show({"confirmed": list(done)}, f"Done for: {', '.join(done) or 'nothing waited'}.")
            return
        for action, well in ((right, True), (wrong, False)):
            if action is not None:
                suggestions.answered(action, well)
        found = suggestions.automation()
    if session.shown_as_json(found):
        return
    print_table(
        ("action", "plan", "taken", "answers", ""),
        [
            (name, one.plan, f"{one.acceptance_rate:.0%}", str(one.feedback_count), one.message)
            for name, one in found.actions.items()
        ],
        wide=4,
        empty="Nothing acts by itself.",
    )
    for name, fate in found.held.items():
        say(f"Waits for a yes (--confirm) or a no (--refuse): memories of {name}, which was {fate}.")
    for one in found.pending:
        say(f"Unanswered: {one.session_id} ({one.task})")


def _line(text: str) -> str:
    return " ".join(text.split())[:200]
