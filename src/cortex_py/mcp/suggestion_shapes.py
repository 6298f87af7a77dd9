"""From suggestions and plans to what their tools answer."""

from __future__ import annotations

from collections.abc import Sequence

from ..clock import iso
from ..context.suggestions import Automation, Pending, Suggested
from ..ids import context_id
from . import context_answers as answers

__all__ = ["accepted", "automation_status", "rejected", "suggested"]


def suggested(found: Suggested) -> answers.SuggestedContexts:
    count = len(found.suggestions)
    told = f"{count} relevant context{'' if count == 1 else 's'} suggested"
    if not count:
        told = "Nothing fits this task yet, so there is nothing to answer"
    if found.requires_confirmation and count:
        told += "; ask the user before loading them"
    return answers.SuggestedContexts(
        session_id=found.session_id,
        suggestions=[
            answers.SuggestedContext(
                context_id=context_id(one.memory.id),
                branch_id=one.memory.branch_id or "",
                branch_topic=one.branch_topic,
                reason=one.reason[:1].upper() + one.reason[1:],
                confidence=one.confidence,
                source=one.source,
            )
            for one in found.suggestions
        ],
        total_suggestions=count,
        requires_confirmation=found.requires_confirmation,
        pending=_pending(found.pending),
        message=told,
    )


def accepted(count: int) -> answers.SuggestionsAccepted:
    return answers.SuggestionsAccepted(
        accepted_count=count, message=f"Feedback recorded: {count} taken; later suggestions learn from it"
    )


def rejected(kinds: Sequence[str]) -> answers.SuggestionsRejected:
    return answers.SuggestionsRejected(
        message=f"Feedback recorded ({', '.join(kinds)}); such suggestions will be made less often"
    )


def automation_status(found: Automation) -> answers.AutomationStatus:
    standing = found.standing
    return answers.AutomationStatus(
        current_plan=standing.plan,
        acceptance_rate=round(standing.acceptance_rate, 4),
        rejection_rate=round(standing.rejection_rate, 4),
        feedback_count=standing.feedback_count,
        requires_confirmation=[name for name, one in found.actions.items() if one.plan == "B"] or None,
        held=found.held or None,
        pending=_pending(found.pending),
        message=standing.message,
    )


def _pending(waiting: Sequence[Pending]) -> list[answers.PendingSession] | None:
    return [
        answers.PendingSession(
            session_id=one.session_id, task=one.task, suggestions=one.suggestions, expires_at=iso(one.expires_at)
        )
        for one in waiting
    ] or None
