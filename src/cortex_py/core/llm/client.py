"""The one way to ask a language model: within limits, with retries, validated and counted.

A question passes its own token budget, the limit on concurrent questions, the circuit breaker and, for every request,
the daily budget. Only then is anything sent.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NoReturn

from ..clock import Clock
from ..errors import InvalidInput, LLMBudgetSpent, LLMError
from ..remote import RemoteProblem, RetryPolicy, retry
from .values import (
    Budget,
    Finish,
    Ledger,
    Prompt,
    Provider,
    RawAnswer,
    Reply,
    Schema,
    Usage,
    estimate_tokens,
    suggest_remedy,
)

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

__all__ = ["InvalidAnswer", "LanguageModel", "SchemaCheck"]

_ATTEMPTS = 3
# No further attempt starts after this long.
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
        self._patience = RetryPolicy(attempts=attempts, seconds=_PATIENCE_SECONDS, sleep=sleep)
        self._lock = threading.Lock()
        self._reserved = 0

    def __repr__(self) -> str:
        return f"LanguageModel({self._provider!r})"

    @property
    def model(self) -> str:
        """The model's name at its provider."""
        return self._provider.model

    def describe(self) -> dict[str, object]:
        """Where questions go and within which limits; sends nothing."""
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
        """The model's answer as an object that follows `schema`, which must describe an object.

        Raises LLMError with the provider's reason, LLMBudgetSpent if the day's tokens do not suffice.
        """
        check = SchemaCheck(schema)
        question = _Question(prompt, schema, budget)
        if question.tokens > budget.input_tokens:
            raise LLMError(
                f"The question has about {question.tokens} tokens where {budget.input_tokens} are allowed.",
                remedy="Ask with less data.",
            )
        with self._place(), self._breaker.passage():
            return self._answer(question, check)

    def close(self) -> None:
        """Let go of the connections; the next use opens new ones."""
        self._provider.close()

    @contextmanager
    def _place(self) -> Iterator[None]:
        # As long as the slowest question of another caller, with its repair, may take.
        if not self._places.acquire(timeout=2 * (_PATIENCE_SECONDS + self._timeout)):
            raise LLMError(
                f"{self._concurrency} questions are being asked and none of them ended.", remedy="Try again later."
            )
        try:
            yield
        finally:
            self._places.release()

    def _answer(self, question: _Question, check: SchemaCheck) -> Reply:
        used = _Used()
        repaired = False
        try:
            value = self._ask(question, check, used)
        except _UnusableAnswer as wrong:
            repaired = True
            question = question.with_correction(wrong)
            try:
                value = self._ask(question, check, used)
            except _UnusableAnswer as still:
                raise LLMError(
                    f"{self.model} gave an invalid answer twice. {still.why}",
                    remedy="Set llm_model to a more capable model.",
                ) from None
        total = used.total
        return Reply(value, self.model, total.input_tokens, total.output_tokens, total.calls, repaired)

    def _ask(self, question: _Question, check: SchemaCheck, used: _Used) -> dict[str, Any]:
        try:
            return retry(lambda: self._request(question, check, used), self._patience)
        except RemoteProblem as problem:
            raise LLMError(problem.message, remedy=suggest_remedy(problem)) from problem

    def _request(self, question: _Question, check: SchemaCheck, used: _Used) -> dict[str, Any]:
        """One request: reserve tokens, send, read, record."""
        most = question.budget.output_tokens
        with self._reserve(question.tokens + most):
            try:
                raw = self._provider.ask(question.messages, question.schema, most, self._timeout)
            except RemoteProblem as problem:
                # The cost of an answer that timed out is unknown; the question was read.
                self._record(Usage(1, question.tokens if problem.timed_out else 0, 0, 1), used)
                raise
            try:
                value = self._read(raw, most, check)
            except (LLMError, _UnusableAnswer):
                self._record(question.usage(raw, failed=1), used)
                raise
            self._record(question.usage(raw), used)
            return value

    def _read(self, raw: RawAnswer, most: int, check: SchemaCheck) -> dict[str, Any]:
        if raw.finish is Finish.CUT:
            raise LLMError(f"{self.model} was cut off after {most} tokens.", remedy="Allow it more, or ask for less.")
        if raw.finish is Finish.REFUSED:
            raise LLMError(f"{self.model} refused to answer: {raw.text or 'it gave no reason'}")
        try:
            return check.read(raw.text)
        except InvalidAnswer as error:
            raise _UnusableAnswer(raw.text, str(error)) from None

    @contextmanager
    def _reserve(self, tokens: int) -> Iterator[None]:
        """Reserve tokens of the day for a running request, so that concurrent ones see them."""
        with self._lock:
            self._check_day(tokens)
            self._reserved += tokens
        try:
            yield
        finally:
            with self._lock:
                self._reserved -= tokens

    def _check_day(self, tokens: int) -> None:
        if not self._daily_tokens:
            return
        spent = self._ledger.spent(self._today())
        if spent + self._reserved + tokens > self._daily_tokens:
            raise LLMBudgetSpent(
                f"The day's tokens do not suffice: {spent} of {self._daily_tokens} are spent, "
                f"{self._reserved} reserved, and this may take {tokens}.",
                remedy="Wait for the next day (UTC), or raise llm_daily_tokens.",
            )

    def _record(self, usage: Usage, used: _Used) -> None:
        used.total += usage
        self._ledger.record(
            self._today(), self.model, usage.calls, usage.input_tokens, usage.output_tokens, usage.failed
        )

    def _today(self) -> str:
        return self._clock.now().date().isoformat()


class _UnusableAnswer(Exception):
    """An answer that does not follow the schema."""

    def __init__(self, text: str, why: str) -> None:
        super().__init__(why)
        self.text = text
        self.why = why


class _Question:
    """A rendered prompt with its estimated number of tokens."""

    def __init__(self, prompt: Prompt, schema: Schema, budget: Budget) -> None:
        self.prompt = prompt
        self.schema = schema
        self.budget = budget
        self.messages = prompt.render()
        self.tokens = estimate_tokens(f"{self.messages.system}{self.messages.user}{json.dumps(dict(schema))}")

    def with_correction(self, wrong: _UnusableAnswer) -> _Question:
        """The same question with an invalid answer to correct."""
        return _Question(self.prompt.with_correction(wrong.text, wrong.why), self.schema, self.budget)

    def usage(self, raw: RawAnswer, *, failed: int = 0) -> Usage:
        """What an answer cost, estimated where the provider does not count."""
        asked = self.tokens if raw.input_tokens is None else raw.input_tokens
        answered = estimate_tokens(raw.text) if raw.output_tokens is None else raw.output_tokens
        return Usage(1, asked, answered, failed)


class _Used:
    """The total usage of one question."""

    def __init__(self) -> None:
        self.total = Usage()


# -- The circuit breaker ---------------------------------------------------------------------------


class Breaker:
    """Refuses calls for a while after several failures in a row, then lets one try. Safe to share between threads."""

    def __init__(self, clock: Clock, *, failures: int = 5, seconds: float = 60.0) -> None:
        self._clock = clock
        self._limit = failures
        self._pause = timedelta(seconds=seconds)
        self._lock = threading.Lock()
        self._failed = 0
        self._opened: datetime | None = None
        self._trying = False

    @property
    def is_open(self) -> bool:
        """Whether a call would be refused now."""
        with self._lock:
            return self._opened is not None and (self._trying or self._seconds_left() > 0)

    @contextmanager
    def passage(self) -> Iterator[None]:
        """Guard a call: refused while open. LLMError counts as a failure, except a spent budget."""
        trial = self._enter()
        try:
            yield
        except LLMBudgetSpent:
            raise
        except LLMError:
            self._count_failure()
            raise
        else:
            with self._lock:
                self._failed, self._opened = 0, None
        finally:
            if trial:
                with self._lock:
                    self._trying = False

    def _enter(self) -> bool:
        """Whether this call is the trial call."""
        with self._lock:
            if self._opened is None:
                return False
            left = self._seconds_left()
            if left > 0 or self._trying:
                raise LLMError(
                    f"The language model failed {self._failed} times in a row and is left alone for a while.",
                    remedy=f"Try again in {max(1, round(left))} seconds.",
                )
            self._trying = True
            return True

    def _count_failure(self) -> None:
        with self._lock:
            self._failed += 1
            if self._failed >= self._limit:
                self._opened = self._clock.now()

    def _seconds_left(self) -> float:
        if self._opened is None:
            return 0.0
        since = self._clock.now() - self._opened
        # A clock that was set back must not prolong the pause.
        return (self._pause - since).total_seconds() if since >= timedelta(0) else 0.0


# -- reading an answer ---------------------------------------------------------------------------
# Faults are described by place and rule, without the model's own words, which may be anything.

_FENCED = re.compile(r"```(?:json)?[ \t]*\n(.*?)```", re.DOTALL | re.IGNORECASE)
# A model writes a few braces before its answer, not thousands.
_STARTS = 200
_FAULTS = 5
_FAULT_LENGTH = 160
# Rules whose message may be quoted, because it contains only names.
_NAMING = ("required", "additionalProperties")


class InvalidAnswer(ValueError):
    """An answer that is not what was asked for; the message says why."""


class SchemaCheck:
    """Reads answers to one schema. The validator is loaded here, so make one only when it is needed."""

    def __init__(self, schema: Schema) -> None:
        from jsonschema import Draft202012Validator
        from jsonschema.exceptions import SchemaError
        from referencing import Registry

        try:
            Draft202012Validator.check_schema(schema)
        except SchemaError as error:
            raise InvalidInput(f"This is not a JSON schema: {error.message}.", field="schema") from error
        # An empty registry, because the default one would fetch references.
        self._validator = Draft202012Validator(schema, registry=Registry())

    def read(self, text: str) -> dict[str, Any]:
        """The object in an answer; Invalid where there is none, or one that breaks the schema."""
        from referencing.exceptions import Unresolvable

        value = _object(text)
        try:
            # Half of a surrogate pair can be written in JSON and stored nowhere.
            json.dumps(value, ensure_ascii=False).encode()
            faults = sorted(self._validator.iter_errors(value), key=lambda fault: list(map(str, fault.absolute_path)))
        except UnicodeEncodeError:
            raise InvalidAnswer("It holds characters that are not whole.") from None
        except RecursionError:
            raise InvalidAnswer("It is nested too deeply.") from None
        except Unresolvable as error:
            raise InvalidInput("The schema refers to another one.", field="schema") from error
        if faults:
            raise InvalidAnswer(" ".join(_describe(fault) for fault in faults[:_FAULTS]))
        return value


def _describe(fault: ValidationError) -> str:
    rule = str(fault.validator)
    said = fault.message if rule in _NAMING else f"{rule} must be {json.dumps(fault.validator_value)}"
    return f"At {fault.json_path[:_FAULT_LENGTH]}: {said[:_FAULT_LENGTH]}."


def _object(text: str) -> dict[str, Any]:
    """The object that an answer is or, between other words, holds."""
    for candidate in (text, *reversed(_FENCED.findall(text))):
        try:
            value = _DECODER.decode(candidate.strip())
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            return value
        raise InvalidAnswer("It is JSON, but not an object.")
    # The largest, because models write small ones while reasoning.
    _, found = max(_objects(text), key=lambda one: one[0], default=(0, None))
    if found is None:
        raise InvalidAnswer("It holds no JSON object.")
    return found


def _objects(text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Every object that begins at a brace of its own, with its length."""
    start = text.find("{")
    for _ in range(_STARTS):
        if start < 0:
            return
        try:
            value, end = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            end = start + 1
        else:
            yield end - start, value
        start = text.find("{", end)


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_number)
