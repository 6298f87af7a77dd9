"""The one way to ask a language model: within its limits, tried again where that helps, checked, counted.

A question passes, in this order: its own budget, a place among those asked at the same time, the breaker, and
for every request the day's budget. Only then is anything sent.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ..clock import Clock
from ..errors import LLMBudgetSpent, LLMError
from ..remote import Patience, RemoteProblem, persevere
from .breaker import Breaker
from .ledger import Ledger
from .provider import Finish, Provider, Raw, Schema, remedy
from .schema_check import Invalid, SchemaCheck
from .values import Budget, Prompt, Reply, Usage, estimated_tokens

__all__ = ["LanguageModel"]

_ATTEMPTS = 3
# No further attempt is begun after this long.
_PATIENCE_SECONDS = 90.0


class LanguageModel:
    """Asks one provider. Safe to share between threads."""

    def __init__(
        self,
        provider: Provider,
        ledger: Ledger,
        clock: Clock,
        *,
        concurrency: int = 2,
        daily_tokens: int = 200_000,
        timeout: float = 60.0,
        attempts: int = _ATTEMPTS,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """`daily_tokens` of 0 sets no limit. `timeout` is for one answer, `attempts` for each question."""
        self._provider = provider
        self._ledger = ledger
        self._clock = clock
        self._breaker = Breaker(clock)
        self._concurrency = concurrency
        self._places = threading.BoundedSemaphore(concurrency)
        self._daily_tokens = daily_tokens
        self._timeout = timeout
        self._patience = Patience(attempts=attempts, seconds=_PATIENCE_SECONDS, sleep=sleep)
        self._lock = threading.Lock()
        self._promised = 0

    def __repr__(self) -> str:
        return f"LanguageModel({self._provider!r})"

    @property
    def model(self) -> str:
        """The model's name at its provider."""
        return self._provider.model

    def describe(self) -> dict[str, object]:
        """What would be sent where, and within which limits; nothing is sent for this."""
        return {
            "provider": self._provider.name,
            "host": self._provider.host,
            "model": self._provider.model,
            "key": self._provider.has_key,
            "timeout_seconds": self._timeout,
            "concurrency": self._concurrency,
            "daily_tokens": self._daily_tokens,
            "spent_today": self._ledger.spent(self._today()),
            "resting": self._breaker.is_open,
        }

    def complete(self, prompt: Prompt, schema: Schema, budget: Budget) -> Reply:
        """The model's answer as an object that keeps to `schema`, which must describe an object.

        Raises LLMError with the provider's reason, LLMBudgetSpent where the day's tokens do not suffice.
        """
        check = SchemaCheck(schema)
        question = _Question(prompt, schema, budget)
        if question.tokens > budget.input_tokens:
            raise LLMError(
                f"The question has about {question.tokens} tokens where {budget.input_tokens} are allowed.",
                remedy="Ask with less data.",
            )
        with self._place(), self._breaker.passage():
            return self._answered(question, check)

    def close(self) -> None:
        """Let go of the connections; the next use opens new ones."""
        self._provider.close()

    @contextmanager
    def _place(self) -> Iterator[None]:
        # As long as the slowest question that others may be asking, with its repair.
        if not self._places.acquire(timeout=2 * (_PATIENCE_SECONDS + self._timeout)):
            raise LLMError(
                f"{self._concurrency} questions are being asked and none of them ended.", remedy="Try again later."
            )
        try:
            yield
        finally:
            self._places.release()

    def _answered(self, question: _Question, check: SchemaCheck) -> Reply:
        used = _Used()
        repaired = False
        try:
            value = self._asked(question, check, used)
        except _Unusable as wrong:
            repaired = True
            question = question.mending(wrong)
            try:
                value = self._asked(question, check, used)
            except _Unusable as still:
                raise LLMError(
                    f"{self.model} gave an answer that is not valid, and another when told so. {still.why}",
                    remedy="Set llm_model to a more capable model.",
                ) from None
        total = used.total
        return Reply(value, self.model, total.input_tokens, total.output_tokens, total.calls, repaired)

    def _asked(self, question: _Question, check: SchemaCheck, used: _Used) -> dict[str, Any]:
        try:
            return persevere(lambda: self._requested(question, check, used), self._patience)
        except RemoteProblem as problem:
            raise LLMError(problem.message, remedy=remedy(problem)) from problem

    def _requested(self, question: _Question, check: SchemaCheck, used: _Used) -> dict[str, Any]:
        """One request: promised, sent, read, recorded."""
        most = question.budget.output_tokens
        with self._promise(question.tokens + most):
            try:
                raw = self._provider.ask(question.messages, question.schema, most, self._timeout)
            except RemoteProblem as problem:
                # Nobody says what an answer cost that did not come in time; the question was read.
                self._record(Usage(1, question.tokens if problem.timed_out else 0, 0, 1), used)
                raise
            try:
                value = self._read(raw, most, check)
            except (LLMError, _Unusable):
                self._record(question.usage(raw, failed=1), used)
                raise
            self._record(question.usage(raw), used)
            return value

    def _read(self, raw: Raw, most: int, check: SchemaCheck) -> dict[str, Any]:
        if raw.finish is Finish.CUT:
            raise LLMError(f"{self.model} was cut off after {most} tokens.", remedy="Allow it more, or ask for less.")
        if raw.finish is Finish.REFUSED:
            raise LLMError(f"{self.model} refused to answer: {raw.text or 'it gave no reason'}")
        try:
            return check.read(raw.text)
        except Invalid as error:
            raise _Unusable(raw.text, str(error)) from None

    @contextmanager
    def _promise(self, tokens: int) -> Iterator[None]:
        """Keeps tokens of the day for a request under way, so that those asked at the same time see them."""
        with self._lock:
            self._check_day(tokens)
            self._promised += tokens
        try:
            yield
        finally:
            with self._lock:
                self._promised -= tokens

    def _check_day(self, tokens: int) -> None:
        if not self._daily_tokens:
            return
        spent = self._ledger.spent(self._today())
        if spent + self._promised + tokens > self._daily_tokens:
            raise LLMBudgetSpent(
                f"The day's tokens do not suffice: {spent} of {self._daily_tokens} are spent, "
                f"{self._promised} promised, and this may take {tokens}.",
                remedy="Wait for the next day (UTC), or raise llm_daily_tokens.",
            )

    def _record(self, usage: Usage, used: _Used) -> None:
        used.total += usage
        self._ledger.record(
            self._today(), self.model, usage.calls, usage.input_tokens, usage.output_tokens, usage.failed
        )

    def _today(self) -> str:
        return self._clock.now().date().isoformat()


class _Unusable(Exception):
    """An answer that came and is not what was asked for."""

    def __init__(self, text: str, why: str) -> None:
        super().__init__(why)
        self.text = text
        self.why = why


class _Question:
    """A prompt as it is sent, and about how many tokens that is."""

    def __init__(self, prompt: Prompt, schema: Schema, budget: Budget) -> None:
        self.prompt = prompt
        self.schema = schema
        self.budget = budget
        self.messages = prompt.rendered()
        self.tokens = estimated_tokens(f"{self.messages.system}{self.messages.user}{json.dumps(dict(schema))}")

    def mending(self, wrong: _Unusable) -> _Question:
        """The same question with an answer that was not valid."""
        return _Question(self.prompt.mending(wrong.text, wrong.why), self.schema, self.budget)

    def usage(self, raw: Raw, *, failed: int = 0) -> Usage:
        """What an answer cost, estimated where the provider does not count."""
        asked = self.tokens if raw.input_tokens is None else raw.input_tokens
        answered = estimated_tokens(raw.text) if raw.output_tokens is None else raw.output_tokens
        return Usage(1, asked, answered, failed)


class _Used:
    """What the requests of one question cost together."""

    def __init__(self) -> None:
        self.total = Usage()
