"""The language of saved templates: text with `{{placeholders}}` and blocks, read into a tree. Pure.

    template = { text | output | comment | each | if | unless }
    comment  = "{{!" … "}}"
    each     = "{{#each" path [ "as" "|" name "|" ] "}}" template [ "{{else}}" template ] "{{/each}}"
    if       = "{{#if" path "}}" template { "{{else if" path "}}" template } [ "{{else}}" template ] "{{/if}}"
    unless   = "{{#unless" path "}}" … "{{/unless}}"

`expressions` parses the text between the braces. A block tag or comment alone on its line removes the line. All faults
of a text are reported at once. Values are inserted into the tree and never parsed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from ....core.errors import ContentSyntaxError, Fault, LimitExceeded
from .expressions import Path, SyntaxFault, TemplateExpression, read_each, read_output, read_path
from .placeholders import Mark, shown, singular, split

CONTENT_LONGEST = 200_000
DEPTH_MOST = 16
NODES_MOST = 10_000
FAULTS_MOST = 20

_BLOCKS = ("each", "if", "unless")
_TAG = re.compile(r"""\s*+(?P<sign>[#/!]?)\s*+(?P<word>[^\s|:"']*+)""")
_REST_OF_LINE = re.compile(r"[ \t]*+(?:\r?\n|\Z)")
_NOWHERE = Path(0, "this", ())


@dataclass(frozen=True, slots=True)
class Text:
    text: str


@dataclass(frozen=True, slots=True)
class Output:
    expression: TemplateExpression


@dataclass(frozen=True, slots=True)
class Each:
    """A body for every item of a list or object; `names` are the names of an item in the body."""

    path: Path
    names: tuple[str, ...]
    body: tuple[Node, ...]
    otherwise: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Branch:
    """A body that is used if a value is true, or false if `negated`."""

    path: Path
    negated: bool
    body: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """The first branch whose condition holds, or else `otherwise`."""

    branches: tuple[Branch, ...]
    otherwise: tuple[Node, ...]


Node = Text | Output | Each | Choice


@dataclass(frozen=True, slots=True)
class Template:
    """A parsed template.

    `names` are its variables in order of appearance. `inner_names` are names inside list blocks that may be fields of
    an item as well as variables: only the values decide.
    """

    nodes: tuple[Node, ...]
    names: tuple[str, ...]
    inner_names: tuple[str, ...]


def parse(content: str) -> Template:
    """Parse a template.

    Raises `ContentSyntaxError` with all faults, or `LimitExceeded` for one that is too long, too deep or too full.
    """
    if len(content) > CONTENT_LONGEST:
        raise LimitExceeded(
            f"The template has {len(content):,} characters; {CONTENT_LONGEST:,} are allowed.",
            remedy="Shorten it, or make several of it.",
            field="content",
        )
    return _Parser(content).template()


@dataclass(slots=True)
class _Open:
    """A block whose end has not come yet; `into` is the body that is being filled."""

    kind: str
    position: int
    path: Path = _NOWHERE
    names: tuple[str, ...] = ()
    branches: list[Branch] = field(default_factory=list)
    into: list[Node] = field(default_factory=list)
    body: list[Node] | None = None

    @property
    def in_list(self) -> bool:
        return self.kind == "each" and self.body is None

    def turn(self, path: Path) -> None:
        """Finish a branch of `if` or `unless`, and start one under another condition."""
        negated = self.kind == "unless" and not self.branches
        self.branches.append(Branch(self.path, negated, tuple(self.into)))
        self.path, self.into = path, []

    def otherwise(self) -> None:
        if self.kind != "each":
            self.turn(_NOWHERE)
        self.body, self.into = self.into, []

    def node(self) -> Node:
        if self.kind == "each":
            body, rest = (self.into, []) if self.body is None else (self.body, self.into)
            return Each(self.path, self.names, tuple(body), tuple(rest))
        if self.body is None:
            self.otherwise()
        return Choice(tuple(self.branches), tuple(self.into))


class _Parser:
    def __init__(self, content: str) -> None:
        self._content = content
        self._parts, self._faults = split(content)
        # A missing brace often belongs to a block; then faults of blocks are not reported as well.
        self._braces_hold = not self._faults
        self._nodes: list[Node] = []
        self._open: list[_Open] = []
        self._count = 0
        self._names: dict[str, None] = {}
        self._inner_names: dict[str, None] = {}

    def template(self) -> Template:
        for text, mark in self._pieces():
            if text:
                self._add(Text(text), mark.start if mark else len(self._content))
            if mark:
                self._read(mark)
            if len(self._faults) >= FAULTS_MOST:
                break
        else:
            for block in self._open:
                self._never_closed(block)
        if self._faults:
            raise ContentSyntaxError("template", self._faults)
        inner = tuple(name for name in self._inner_names if name not in self._names)
        return Template(tuple(self._nodes), tuple(self._names), inner)

    # -- lines ---------------------------------------------------------------------------------------

    def _pieces(self) -> Iterator[tuple[str, Mark | None]]:
        """Each placeholder with the text before it, without the lines that belong to block tags."""
        texts: list[str] = []
        end, alone = 0, False
        for part in self._parts:
            if isinstance(part, str):
                texts.append(part)
                continue
            text = _without_rest("".join(texts)) if alone else "".join(texts)
            alone = self._stands_alone(part, end)
            yield text.rstrip(" \t") if alone else text, part
            texts, end = [], part.end
        yield _without_rest("".join(texts)) if alone else "".join(texts), None

    def _stands_alone(self, mark: Mark, end: int) -> bool:
        """Whether a tag that prints nothing is alone on its line; `end` is the end of the last placeholder."""
        tag = _TAG.match(mark.inner)
        if not tag or not (tag["sign"] or tag["word"] == "else"):
            return False
        before = self._content[end : mark.start].rstrip(" \t")
        begins = before.endswith("\n") or (not before and end == 0)
        return begins and _REST_OF_LINE.match(self._content, mark.end) is not None

    # -- placeholders --------------------------------------------------------------------------------

    def _read(self, mark: Mark) -> None:
        tag = _TAG.match(mark.inner)
        sign, word = (tag["sign"], tag["word"]) if tag else ("", "")
        # The start of the rest of the tag, for positions in messages.
        rest = tag.end() if tag else 0
        try:
            if sign == "!":
                return
            if sign == "#":
                self._begin(mark, word, mark.inner[rest:], mark.start + 2 + rest)
            elif sign == "/":
                self._finish(mark, word, mark.inner[rest:])
            elif word == "else":
                self._turn(mark, mark.inner[rest:], mark.start + 2 + rest)
            else:
                expression = read_output(mark.inner, mark.start + 2, self._scopes())
                self._note(expression.path)
                self._add(Output(expression), mark.start)
        except SyntaxFault as wrong:
            self._fault(wrong.message, wrong.position)

    def _begin(self, mark: Mark, word: str, rest: str, offset: int) -> None:
        if len(self._open) >= DEPTH_MOST:
            raise _too_much(self._content, mark.start, f"Blocks are nested deeper than {DEPTH_MOST} levels")
        block = _Open(word, mark.start)
        try:
            if word == "each":
                head = read_each(rest, offset, self._scopes())
                self._note(head.path)
                block.path, block.names = head.path, _item_names(head.path, head.name)
            elif word in _BLOCKS:
                block.path = read_path(rest, offset, self._scopes(), f"#{word}")
                self._note(block.path)
            else:
                known = ", ".join(f"#{kind}" for kind in _BLOCKS)
                raise SyntaxFault(f"There is no block {shown('#' + word)}; there are: {known}.", mark.start)
        finally:
            # A block with a fault is closed somewhere too.
            self._open.append(block)

    def _turn(self, mark: Mark, rest: str, offset: int) -> None:
        tag = _TAG.match(rest)
        word = tag["word"] if tag else ""
        block = self._open[-1] if self._open else None
        if block is None:
            return self._unbalanced("`else` stands outside of a block.", mark.start)
        if block.kind not in _BLOCKS:
            return None
        if block.body is not None:
            return self._unbalanced(f"`else` was there already in this `#{block.kind}`.", mark.start)
        self._counted(mark.start)
        if not rest.strip():
            return block.otherwise()
        if not tag or tag["sign"] or word != "if":
            raise SyntaxFault("After `else` only `if` with a path can follow.", offset)
        if block.kind == "each":
            raise SyntaxFault("In `#each` the `else` stands without `if`.", offset)
        path = read_path(rest[tag.end() :], offset + tag.end(), self._scopes(), "else if")
        self._note(path)
        return block.turn(path)

    def _finish(self, mark: Mark, word: str, rest: str) -> None:
        if not word or rest.strip():
            self._fault("A closing tag names its block and nothing else, as in `{{/each}}`.", mark.start)
        if not any(block.kind == word for block in self._open):
            return self._unbalanced(f"{shown('/' + word)} closes nothing.", mark.start) if word else None
        while (block := self._open.pop()).kind != word:
            self._never_closed(block)
        if word in _BLOCKS:
            self._add(block.node(), mark.start)
        return None

    # -- names ---------------------------------------------------------------------------------------

    def _scopes(self) -> int:
        return sum(block.in_list for block in self._open)

    def _note(self, path: Path) -> None:
        """Record a name that no list block around it binds."""
        if path.root == "this" or path.root.startswith("@"):
            return
        scopes = [block.names for block in self._open if block.in_list]
        around = scopes[: len(scopes) - path.ups]
        if not any(path.root in names for names in around):
            (self._inner_names if around else self._names).setdefault(path.root)

    # -- bookkeeping ---------------------------------------------------------------------------------

    def _add(self, node: Node, position: int) -> None:
        self._counted(position)
        (self._open[-1].into if self._open else self._nodes).append(node)

    def _counted(self, position: int) -> None:
        self._count += 1
        if self._count > NODES_MOST:
            raise _too_much(self._content, position, f"The template has more than {NODES_MOST:,} parts")

    def _fault(self, message: str, position: int) -> None:
        if len(self._faults) < FAULTS_MOST:
            self._faults.append(Fault.at(self._content, position, message))

    def _never_closed(self, block: _Open) -> None:
        if block.kind in _BLOCKS:
            end = f"{{{{/{block.kind}}}}}"
            self._unbalanced(f"`#{block.kind}` is never closed; `{end}` is missing.", block.position)

    def _unbalanced(self, message: str, position: int) -> None:
        if self._braces_hold:
            self._fault(message, position)


def _item_names(path: Path, name: str | None) -> tuple[str, ...]:
    last = path.fields[-1] if path.fields else path.root
    return tuple(one for one in (name, singular(last) if last != "this" else None) if one)


def _without_rest(text: str) -> str:
    rest = _REST_OF_LINE.match(text)
    return text[rest.end() :] if rest else text


def _too_much(content: str, position: int, message: str) -> LimitExceeded:
    where = Fault.at(content, position, "")
    return LimitExceeded(
        f"{message} (line {where.line}, column {where.column}).",
        remedy="Make several templates of it.",
        field="content",
    )
