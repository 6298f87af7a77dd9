"""What is written to a file is read back exactly, and no file can do harm."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cases import each
from cortex_py.core.errors import InvalidInput
from cortex_py.core.records import Saved, SavedKind, Variable
from cortex_py.parts.prompts.checks import Draft
from cortex_py.parts.prompts.files import ENTRIES_MOST, FILE_MOST, FORMATS, Format, dump, format_of, load
from cortex_py.texts.structured import yaml_item
from timing import quick

NAMES: dict[Format, str] = {"markdown": "stem.md", "yaml": "stem.yaml", "json": "stem.json"}
NASTY = (
    *(
        "\n",
        "\r",
        "\r\n",
        "\u2028",
        "\u2029",
        "\x85",
        "\x0b",
        "\x0c",
        "\x1c",
        "\ufeff",
        "\0",
        "\x7f",
        "\x1b",
        "\t",
        " ",
    ),
    *("---", "\n---\n", "---\r\n", "--- ", "...\n", "\n...\n", "%YAML 1.1\n", "# ", " #", ": ", "- ", "? ", "|", ">"),
    *("'", '"', "\\", "\\n", "{{x}}", "{", "}", "[", "]", ",", "&a", "*a", "!!str ", "<<", "@", "`", "=", "~"),
    *("null", "true", "No", "on", "y", "1e3", "1_000", "0x1f", "010", "12:30", "2026-01-02", ".inf", "-0.0", "+1", ""),
    *("😀", "👩\u200d👧", "é", "e\u0301", "\xa0", "\xad", "\ufffe", "\uffff", "\U0010ffff", "\ue000", "  x\n", "x \n"),
)
letters = st.characters(exclude_categories=["Cs"])
texts = st.lists(st.sampled_from(NASTY) | st.text(letters, max_size=4), max_size=12).map("".join)
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**1000), 2**1000)
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
variables = st.builds(
    Variable,
    name=texts,
    description=st.none() | texts,
    default=st.none() | values,
    required=st.booleans(),
    choices=st.lists(texts, max_size=3).map(tuple),
)
saved_texts = st.builds(
    Saved,
    kind=st.sampled_from(["prompt", "template"]),
    name=texts,
    domain=st.just("user"),
    content=texts,
    description=st.none() | texts,
    tags=st.lists(texts, max_size=3).map(tuple),
    variables=st.lists(variables, max_size=3).map(tuple),
)


@pytest.fixture(params=["C", "Python"], autouse=True)
def _both_yaml_parsers(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """PyYAML has its parser in C only where libyaml was there when it was built."""
    if request.param == "Python":
        monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    elif not hasattr(yaml, "CSafeLoader"):
        pytest.skip("PyYAML was built without libyaml")


def as_draft(saved: Saved) -> Draft:
    return Draft(
        name=saved.name,
        content=saved.content,
        description=saved.description,
        tags=saved.tags,
        variables=saved.variables,
        kind=saved.kind,
    )


def exact(drafts: list[Draft]) -> list[Any]:
    """Drafts with the types of their defaults: True, 1 and 1.0 are equal in Python."""
    return [(draft, [json.dumps(variable.default) for variable in draft.variables]) for draft in drafts]


def prompt(content: str = "Do {{it}}.", **more: Any) -> Saved:
    return Saved(**{"kind": "prompt", "name": "do-it", "domain": "user", "content": content, **more})


def variable(default: Any) -> Saved:
    return prompt(variables=(Variable("it", default=default, required=False),))


def read(text: str | bytes, filename: str = "stem.md", kind: SavedKind = "prompt") -> list[Draft]:
    return load(text.encode() if isinstance(text, str) else text, filename=filename, kind=kind)


def refused(text: str | bytes, filename: str, kind: SavedKind = "prompt") -> str:
    with pytest.raises(InvalidInput) as caught:
        read(text, filename, kind)
    assert caught.value.field == "file"
    assert caught.value.message.startswith(filename)
    assert "\n" not in caught.value.message
    return caught.value.message


def several(saved: list[Saved], format: Format) -> bytes:
    """One file of several texts."""
    files = [dump(one, format).decode() for one in saved]
    if format == "json":
        return json.dumps([json.loads(file) for file in files]).encode()
    return ("".join(map(yaml_item, files)) or "[]").encode()


class TestRoundTrip:
    @pytest.mark.slow
    @each("format", FORMATS)
    @given(saved=saved_texts)
    @example(saved=prompt("---\nname: other\n---\n"))
    @example(saved=prompt("\ufeff---\n"))
    @example(saved=prompt("\r\nfirst\r\n\r\n"))
    @example(saved=prompt("\n\n  indented first\n\tand a tab\n\n\nlast"))
    @example(saved=prompt("".join(map(chr, range(0x3000)))))
    @example(saved=variable({"k" * 2000: {"": []}}))
    @example(saved=variable({"k" * 1024: 1, "a: b": [{}, [], ""]}))
    @example(saved=variable("line\n---\nline\n"))
    def test_one(self, format: Format, saved: Saved) -> None:
        found = load(dump(saved, format), filename=NAMES[format], kind=saved.kind)
        assert exact(found) == exact([as_draft(saved)])

    @pytest.mark.slow
    @each("format", ["yaml", "json"])
    @settings(max_examples=10)
    @given(saved=st.lists(saved_texts.filter(lambda one: one.kind == "prompt"), max_size=4))
    def test_many(self, format: Format, saved: list[Saved]) -> None:
        found = load(several(saved, format), filename=NAMES[format], kind="prompt")
        assert exact(found) == exact([as_draft(one) for one in saved])

    @each("format", FORMATS)
    def test_every_character_in_every_field(self, format: Format) -> None:
        points = [*range(0xD800), *range(0xE000, 0x11000), *range(0x1F600, 0x1F680), 0x1FFFE, 0x10FFFF]
        for part in range(0, len(points), 5000):
            text = "a".join(map(chr, points[part : part + 5000]))
            saved = prompt(f"{text}\n{text}", name=text, description=f"{text}\n", tags=(text,))
            assert load(dump(saved, format), filename=NAMES[format], kind="prompt") == [as_draft(saved)]

    @given(saved=saved_texts.filter(lambda one: len(one.variables) < 2))
    def test_other_readers_of_yaml_agree_on_texts(self, saved: Saved) -> None:
        found = yaml.safe_load(dump(saved, "yaml"))
        assert (found["name"], found["content"]) == (saved.name, saved.content)
        assert found.get("description") == saved.description
        assert tuple(found.get("tags", ())) == saved.tags


class TestWriting:
    def test_markdown(self) -> None:
        saved = prompt(
            "Do {{it}}.",
            kind="template",
            description="Does: it",
            tags=("a", "no"),
            variables=(
                Variable("it", "What to do\nand how", choices=("x", "y")),
                Variable("with", default=1, required=False),
                Variable("odd", default="2026-01-02"),
                Variable("free", required=False),
            ),
        )
        assert dump(saved, "markdown").decode() == (
            '---\nname: do-it\nkind: template\ndescription: "Does: it"\ntags: [a, "no"]\nvariables:\n'
            '- name: it\n  description: |-\n    What to do\n    and how\n  choices: [x, "y"]\n'
            '- name: with\n  default: 1\n- name: odd\n  default: "2026-01-02"\n  required: true\n'
            "- name: free\n  required: false\n---\nDo {{it}}."
        )

    def test_a_content_of_several_lines_stays_readable_in_yaml(self) -> None:
        assert dump(prompt("One.\n\n  Two.\n"), "yaml") == b"name: do-it\ncontent: |\n  One.\n\n    Two.\n"

    def test_json(self) -> None:
        expected = '{\n  "name": "do-it",\n  "tags": [\n    "é"\n  ],\n  "content": "x"\n}\n'
        assert dump(prompt("x", tags=("é",)), "json").decode() == expected

    @each("format", FORMATS)
    @each("default", [float("nan"), float("inf"), 10**400, 10**5000, "\ud800", {"a": object()}], ids=range(6))
    def test_what_cannot_be_read_back_is_refused(self, format: Format, default: object) -> None:
        with pytest.raises(InvalidInput, match="cannot be written"):
            dump(variable(default), format)

    @each("format", FORMATS)
    def test_limits_hold_for_writing_too(self, format: Format) -> None:
        nested: Any = []
        for _ in range(5000):
            nested = [nested]
        with pytest.raises(InvalidInput, match="nested deeper"):
            dump(variable(nested), format)
        with pytest.raises(InvalidInput, match="larger than"):
            dump(prompt("x" * FILE_MOST), format)
        with pytest.raises(InvalidInput, match="surrogate"):
            dump(prompt("\udfff"), format)

    def test_a_list_is_bounded(self) -> None:
        assert len(read(several([prompt("")] * ENTRIES_MOST, "yaml"), "x.yaml")) == ENTRIES_MOST
        with pytest.raises(InvalidInput, match="more than"):
            read(several([prompt("")] * (ENTRIES_MOST + 1), "json"), "x.json")


class TestMarkdown:
    @each("text", ["", "Just text.\r\n", "# Title\n\n---\nrule\n---\n", " ---\nx\n---\n", "----\nx", "---x\n---\n"])
    def test_without_front_matter_all_is_content(self, text: str) -> None:
        assert read(text, "code-review.md") == [Draft(name="code-review", content=text)]

    @each("front", ["", "description: D\n", "name:\n", "# a comment\n"])
    def test_without_a_name_the_stem_is_used(self, front: str) -> None:
        [draft] = read(f"---\n{front}---\nText", "folder/code-review.md")
        assert (draft.name, draft.content) == ("code-review", "Text")

    @each("end", ["\n", "\r\n"])
    @each("bom", ["", "\ufeff"])
    def test_hand_edited_front_matter(self, end: str, bom: str) -> None:
        front = end.join(
            ["---", "name: a", "tags:", "- x", "- y", "variables:", "  - name: v", "    default: no", "--- "]
        )
        [draft] = read(f"{bom}{front}{end}\r\nText\r\n---\r\n")
        assert draft == Draft(
            name="a",
            content="\r\nText\r\n---\r\n",
            tags=("x", "y"),
            variables=(Variable("v", default="no", required=False),),
        )

    def test_the_closing_line_may_be_the_last(self) -> None:
        assert read("---\nname: a\n---") == [Draft(name="a", content="")]

    def test_only_the_first_byte_order_mark_is_dropped(self) -> None:
        assert read("\ufeff\ufeffText")[0].content == "\ufeffText"
        assert read("---\n---\n\ufeffText")[0].content == "\ufeffText"

    def test_front_matter_that_is_never_closed_is_not_guessed_at(self) -> None:
        assert "line 1: the front matter that begins here is never closed" in refused("---\nname: a\n", "x.md")

    def test_lines_are_those_of_the_file(self) -> None:
        assert "x.md, line 3: name must be text" in refused("---\ntags: []\nname: 12\n---\n", "x.md")
        assert "x.md, line 4: it is not valid YAML" in refused("---\na: b\nc:\n d: e: f\n---\n", "x.md")

    def test_content_is_no_field(self) -> None:
        message = refused("---\ncontent: x\n---\n", "x.md")
        assert "'content' is not known; known are name, description, tags, variables, kind." in message


class TestFields:
    @each(
        ("given", "expected"),
        [
            ("", Variable("v")),
            ("required: false", Variable("v", required=False)),
            ("default: x", Variable("v", default="x", required=False)),
            ("default: x, required: true", Variable("v", default="x", required=True)),
            ("default: null, required: null, choices: null", Variable("v")),
            ("default: [1, {a: ~}], description: D", Variable("v", "D", [1, {"a": None}], False)),
            ("choices: [yes, no]", Variable("v", choices=("yes", "no"))),
        ],
    )
    def test_variables(self, given: str, expected: Variable) -> None:
        [draft] = read(f"{{content: x, variables: [{{name: v{', ' if given else ''}{given}}}]}}", "n.yml")
        assert draft.variables == (expected,)

    @each(
        ("word", "value"),
        [
            *(
                (word, word)
                for word in ("2026-01-01", "2026-01-01T10:00:00Z", "12:30", "010", "0x1F", "1_000", "no", "on")
            ),
            *((word, word) for word in (".inf", ".nan", "1.", "1e", "=", "<<", "y", "-x", "0o7")),
            *(("12", 12), ("-3", -3), ("+3", 3), ("1.5", 1.5), ("1e3", 1000.0), ("true", True), ("False", False)),
            *(('"12"', "12"), ("'true'", "true"), ("'2026-01-01'", "2026-01-01")),
        ],
    )
    def test_bare_words_mean_what_they_mean_in_json_or_are_text(self, word: str, value: object) -> None:
        [draft] = read(f"content: x\nvariables:\n- name: v\n  default: {word}\n", "n.yaml")
        found = draft.variables[0].default
        assert (found, type(found)) == (value, type(value))

    @each(
        ("text", "message"),
        [
            ("content: 1", "line 1: content must be text"),
            ("name: x", "content must be there"),
            ("content: x\nname: [a]", "line 2: name must be text"),
            ("content: x\ndescription: true", "line 2: description must be text"),
            ("content: x\ntags: a", "line 2: tags must be a list of texts"),
            ("content: x\ntags: [a, 1]", "line 2: tags must be a list of texts"),
            ("content: x\nvariables: {a: 1}", "line 2: variables must be a list"),
            ("content: x\nvariables:\n- a", "line 3: variable 1: it must be a mapping"),
            ("content: x\nvariables:\n- default: 1", "line 3: variable 1: name must be there"),
            (
                "content: x\nvariables:\n- name: a\n- name: b\n  required: 1",
                "line 5: variable 2: required must be true",
            ),
            (
                "content: x\nvariables:\n- name: a\n  choices: [1]",
                "line 4: variable 1: choices must be a list of texts",
            ),
            ("content: x\nvariables:\n- name: a\n  typ: 1", "line 4: variable 1: the field 'typ' is not known"),
            ("content: x\ncontents: y", "line 2: the field 'contents' is not known; known are name, "),
            ('content: x\n"": y', "line 2: the field '' is not known"),
            ("content: x\nkind: memory", "line 2: kind must be prompt or template"),
            ("content: x\nkind: template", "line 2: it is a template, and a prompt is looked for"),
            ("- content: x\n  name: a\n- name: b", "line 3: entry 2: content must be there"),
            ("- content: x", "line 1: entry 1: name must be there"),
            (
                "- name: a\n  content: x\n  variables:\n  - {name: v, required: no}",
                "line 4: entry 1, variable 1: required",
            ),
            ("- text", "line 1: entry 1: it must be a mapping with name, "),
            ("text", "line 1: it must be a mapping with name, "),
            ("", "it must be a mapping"),
        ],
    )
    def test_wrong_fields_are_told_with_their_line(self, text: str, message: str) -> None:
        assert message in refused(text, "x.yaml")

    def test_json_names_the_entry(self) -> None:
        entry = {"name": "a", "content": "x"}
        assert "x.json: entry 2: the field 'tag' is" in refused(json.dumps([entry, {**entry, "tag": "y"}]), "x.json")

    def test_a_prompt_is_not_read_as_a_template(self) -> None:
        assert "it is a prompt, and a template is looked for" in refused("---\nkind: prompt\n---\n", "x.md", "template")
        assert "it is a template" in refused(dump(prompt(kind="template"), "markdown"), "x.md")
        assert read("---\nkind: template\n---\n", kind="template")[0].kind == "template"
        assert read("Text", kind="template")[0].kind == "template"

    def test_one_mapping_may_be_named_by_its_file(self) -> None:
        assert read('{"content": "x"}', "a/code-review.json") == [Draft(name="code-review", content="x")]

    def test_the_name_of_a_file_must_be_text_where_it_is_used(self) -> None:
        with pytest.raises(InvalidInput, match="not UTF-8"):
            read("Text", "caf\udce9.md")
        assert read("---\nname: cafe\n---\n", "caf\udce9.md")[0].name == "cafe"


@each(
    ("name", "format"),
    [
        ("a.md", "markdown"),
        ("b/A.MD", "markdown"),
        ("a.yaml", "yaml"),
        ("a.YML", "yaml"),
        ("a.b.json", "json"),
        ("a.txt", None),
        ("a", None),
        (".md", None),
        ("a.md/b", None),
        ("a.md~", None),
    ],
)
def test_format_by_suffix(name: str, format: Format | None) -> None:
    assert format_of(name) == format


def _nested(opening: str, closing: str, depth: int) -> str:
    return opening * depth + closing * depth


BILLION_LAUGHS = "a: &a [x,x]\nb: &b [*a,*a]\ncontent: *b\n"


class TestHostile:
    @pytest.mark.slow
    @each(
        ("text", "message"),
        [
            (BILLION_LAUGHS, "line 1: anchors, aliases and tags"),
            ("content: *x\n", "anchors, aliases and tags"),
            ("content: !!python/object/apply:os.system [id]\n", "line 1: anchors, aliases and tags"),
            ("content: !!str 1\n", "anchors, aliases and tags"),
            ("content: ! x\n", "anchors, aliases and tags"),
            ("!!map\ncontent: x\n", "anchors, aliases and tags"),
            ("&a content: x\n", "anchors, aliases and tags"),
            ("content: x\ncontent: y\n", "line 2: the field 'content' occurs twice"),
            ("content: x\nvariables:\n- name: a\n  default: {b: 1, 'b': 2}\n", "line 4: the field 'b' occurs twice"),
            ("? [a]\n: x\n", "line 1: the name of a field must be text"),
            ("content: x\n--- \ncontent: y\n", "line 2: it holds more than one YAML document"),
            (f"content: x\nvariables: {_nested('[', ']', 40)}", "line 2: it is nested deeper than 32 levels"),
            (f"content: {_nested('[', ']', 400_000)}", "nested deeper"),
            (f"content: {'- ' * 100_000}", "YAML"),
            ("- " * 100_000, "nested deeper"),
            ("? " * 100_000, "must be text"),
            (f"content: {'{a: ' * 100_000}", "nested deeper"),
            (f"content: [{'x,' * 100_001}]", "line 1: it holds more than 100,000 values"),
            (f"content: x\nvariables: [{{name: a, default: {'9' * 400}}}]", "hundreds of digits"),
            (f"content: x\nvariables: [{{name: a, default: {'9' * 5000}}}]", "impossible value"),
            ("content: x\nvariables: [{name: a, default: 1e999}]", "not finite"),
            ("name: a\ncontent: a\0b", "line 2: YAML does not hold the character U+0000"),
            ("content: 'a\x1bb'", "line 1: YAML does not hold the character U+001B"),
            ('content: "\\UFFFFFFFF"', "x.yaml"),
            ('content: "\\uD83D\\uDE00"', "x.yaml"),
            ("content: [", "not valid YAML"),
            ("\tcontent: x", "line 1: it is not valid YAML"),
            ("%YAML 9.9\n---\ncontent: x\n", "not valid YAML"),
            ("content: x\n" * 90_000, "line 2: the field 'content' occurs twice"),
            ("[" + "{name: a, content: x}," * (ENTRIES_MOST + 1) + "]", "1,001 texts, more than 1,000"),
        ],
        ids=itertools.count(),
    )
    def test_yaml(self, text: str, message: str) -> None:
        assert message in quick(lambda: refused(text, "x.yaml"), 20)

    def test_merge_keys_merge_nothing(self) -> None:
        [draft] = read("content: x\nvariables: [{name: a, default: {<<: {b: 1}}}]", "x.yaml")
        assert draft.variables[0].default == {"<<": {"b": 1}}

    @each(
        ("text", "message"),
        [
            ("", "line 1: it is not valid JSON"),
            ('{\n"content": }', "line 2: it is not valid JSON"),
            ('{"content": "x"} {}', "not valid JSON"),
            ('{"content": "a\nb"}', "not valid JSON"),
            ('{"content": "x", "content": "y"}', "the field 'content' occurs twice"),
            ('{"content": "x", "variables": [{"name": "a", "default": {"b": 1, "b": 1}}]}', "'b' occurs twice"),
            ("{" + ",".join(f'"{n}": 0' for n in range(60_000)) + ', "0": 1}', "the field '0' occurs twice"),
            ('{"content": NaN}', "NaN is not a number"),
            ('{"content": [-Infinity]}', "-Infinity is not a number"),
            ('{"content": 1e999}', "not finite"),
            ('{"content": %s}' % ("9" * 5000), "hundreds of digits"),
            ('{"content": %s}' % ("9" * 500), "hundreds of digits"),
            ('{"content": "\\ud800"}', "surrogate"),
            ('{{"content": {}}}'.format(_nested("[", "]", 40)), "nested deeper than 32 levels"),
            (_nested("[", "]", 400_000), "nested"),
            ('{"a":' * 150_000, "nested"),
            ("[" + '{"name": "a", "content": ""},' * ENTRIES_MOST + "{}]", "1,001 texts"),
            ("12", "it must be a mapping"),
        ],
        ids=itertools.count(),
    )
    def test_json(self, text: str, message: str) -> None:
        assert message in refused(text, "x.json")

    @each("name", NAMES.values())
    def test_bytes(self, name: str) -> None:
        assert "line 2: it is not UTF-8" in refused(b"a\n\xff", name)
        assert "it is not UTF-8" in refused(b"\xed\xa0\x80", name)
        assert "it is not UTF-8" in refused("x".encode("utf-16"), name)
        assert f"larger than {FILE_MOST:,} bytes" in refused(b" " * (FILE_MOST + 1), name)

    def test_the_largest_file_is_read(self) -> None:
        assert len(read(b"x" * FILE_MOST)[0].content) == FILE_MOST

    def test_other_files_are_refused(self) -> None:
        assert "only files with the endings .md, .yaml, .yml, .json are read" in refused("x", "x.txt")

    def test_messages_stay_on_one_line(self) -> None:
        with pytest.raises(InvalidInput) as caught:
            read('{"a\\nb\\u001b": 1}', "dir\n\x1b[31m/x.json")
        assert caught.value.message.isprintable()

    @each("name", NAMES.values())
    @given(data=st.binary(max_size=60) | texts.map(str.encode) | texts.map(lambda text: f"---\n{text}\n---\n".encode()))
    def test_any_bytes_are_read_or_refused(self, name: str, data: bytes) -> None:
        try:
            drafts = load(data, filename=name, kind="prompt")
        except InvalidInput as error:
            assert error.message.isprintable()
        else:
            for draft in drafts:
                assert isinstance(draft.name, str)
                draft.content.encode()

    @each("change", [lambda data: data[:-3], lambda data: data.replace(b"name", b"nome")])
    def test_damage_is_not_guessed_away(self, change: Callable[[bytes], bytes]) -> None:
        refused(change(dump(prompt(), "json")), "x.json")
