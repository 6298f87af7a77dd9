"""The error tree and its wire forms."""

import errno

import pytest

import cortex_py.core.errors as errors
from cortex_py.core.errors import WIRE_FORMS, CortexError, wire_form


def _tree(kind: type[CortexError]) -> list[type[CortexError]]:
    return [kind, *(leaf for child in kind.__subclasses__() for leaf in _tree(child))]


def test_every_error_is_drawn_in_the_tree_and_exported() -> None:
    for kind in _tree(CortexError):
        assert kind.__name__ in (errors.__doc__ or "")
        assert kind.__name__ in errors.__all__


def test_no_row_of_the_table_is_hidden_by_an_earlier_one() -> None:
    for number, (kind, _) in enumerate(WIRE_FORMS):
        assert not any(issubclass(kind, earlier) for earlier, _ in WIRE_FORMS[:number]), kind


def test_a_message_ends_with_its_remedy() -> None:
    assert str(CortexError("It broke.", remedy="Mend it.")) == "It broke. Mend it."


def test_the_documented_codes_are_used() -> None:
    assert wire_form(errors.MemoryNotFound("x")).subcog == -32604
    assert wire_form(errors.ContentBlocked("x", kinds=())).subcog == -32605
    assert wire_form(errors.FilterSyntaxError("x", position=0)).subcog == -32602
    assert wire_form(errors.ProjectNotFound("x")).cortex == "PROJECT_NOT_FOUND"
    assert wire_form(errors.BranchNotFound("x")).cortex == "BRANCH_NOT_FOUND"
    assert wire_form(errors.StoreFull("x")).cortex == "STORAGE_ERROR"
    assert wire_form(errors.ContentTooLarge("x")).embedding == "TEXT_TOO_LONG"


def test_a_caller_elsewhere_is_not_told_where_the_store_is(caplog: pytest.LogCaptureFixture) -> None:
    known = errors.StoreFull("The disk that holds /home/ada/.cortex is full.", remedy="Free some space.")
    before = errors.CALLED_FROM_ELSEWHERE.set(True)
    try:
        told = [
            errors.StoreFull("The disk that holds /home/ada/.cortex is full.", remedy="Free some space in /home."),
            errors.StoreCorrupt("/home/ada/.cortex/cortex.db is damaged."),
            errors.ModelMissing("Nothing in /home/ada/models."),
        ]
        unsure = errors.StoreUnavailable(
            "db.example went away.", remedy="Look before you repeat it.", perhaps_written=True
        )
        assert str(errors.InvalidInput("/your/path is no folder.")) == "/your/path is no folder."
    finally:
        errors.CALLED_FROM_ELSEWHERE.reset(before)
    assert "/home" in str(known)
    assert not any("/home" in str(one) for one in told)
    assert str(unsure) == "The store of this server cannot be reached. Look before you repeat it."
    assert caplog.text.count("/home/ada") == 3


@pytest.mark.parametrize(
    ("error", "word"),
    [
        (OSError(errno.EMFILE, "Too many open files"), "ulimit -n"),
        (MemoryError(), "ulimit -v"),
        (RuntimeError("can't start new thread"), "ulimit -v"),
        (ImportError("a.so: failed to map segment from shared object"), "ulimit -v"),
    ],
)
def test_what_the_system_refuses_for_want_of_more_has_advice_however_deep(error: Exception, word: str) -> None:
    try:
        try:
            raise error
        except Exception as inner:
            raise AttributeError("module 'numpy' has no attribute 'float32'") from inner
    except AttributeError as outer:
        assert word in (errors.advice_on_limits(outer) or "")
    assert errors.advice_on_limits(ValueError("a bug")) is None
    assert "ulimit -n" in str(errors.storage_error(OSError(errno.EMFILE, "x"), "cortex.db"))
