"""Documents are read back by real parsers and give the values back."""

from __future__ import annotations

import json
import math
import re
from datetime import UTC, datetime
from xml.dom import minidom
from xml.etree import ElementTree

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cases import each
from cortex_py.core.errors import LimitExceeded
from cortex_py.parts.prompts.language.placeholders import singular
from cortex_py.parts.prompts.language.printing import ListText
from cortex_py.parts.prompts.language.rendering import as_json, as_xml

KEYS = st.one_of(
    st.sampled_from(["memories", "a", "a-b", "xml", "entry", "item", "1", "", "é", "s"]), st.text(max_size=6)
)
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(),
    st.text(alphabet="\r\n\t <>&\"']\x00\x0b\x1f\x85\ud800\ufffe\u2028 x"),
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(KEYS, inner, max_size=4)),
    max_leaves=15,
)
FIELDS = st.dictionaries(KEYS, VALUES, max_size=5)


def plain(text: str) -> str:
    return re.sub("[\ud800-\udfff]", "\ufffd", text)


def xml_text(text: str) -> str:
    return "".join(
        sign
        if sign in "\t\n\r" or " " <= sign <= "\ud7ff" or "\ue000" <= sign <= "\ufffd" or sign > "\uffff"
        else "\ufffd"
        for sign in text
    )


def expected_json(value: object) -> object:
    if isinstance(value, dict):
        return {plain(key): expected_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [expected_json(item) for item in value]
    if isinstance(value, str):
        return plain(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value


def compare(element: ElementTree.Element, value: object, name: str) -> None:
    """Check that an element holds exactly this value."""
    if isinstance(value, dict):
        # Keys that differ only in what cannot be written fall together.
        items = {plain(key): item for key, item in value.items()}
        assert len(element) == len(items)
        for child, (key, item) in zip(element, items.items(), strict=True):
            assert (child.tag if "key" not in child.attrib else child.get("key")) == xml_text(key)
            compare(child, item, key)
    elif isinstance(value, list):
        assert len(element) == len(value)
        for child, item in zip(element, value, strict=True):
            one = singular(name)
            assert child.tag == (one if one and re.fullmatch("[A-Za-z_][A-Za-z0-9._-]*", one) else "item")
            compare(child, item, child.tag)
    else:
        text = xml_text(value) if isinstance(value, str) else json.dumps(expected_json(value)).replace("null", "")
        assert (element.text or "") == text
        assert len(element) == 0


# -- JSON ----------------------------------------------------------------------------------------------


def test_json() -> None:
    text = as_json({"title": "é", "memories": [{"at": datetime(2026, 1, 2, tzinfo=UTC)}], "x": (1, math.inf), 5: None})  # type: ignore[dict-item]
    assert json.loads(text) == {"title": "é", "memories": [{"at": "2026-01-02T00:00:00Z"}], "x": [1, None], "5": None}
    assert '"é"' in text


@settings(deadline=None)
@given(FIELDS)
def test_json_gives_the_values_back(fields: dict[str, object]) -> None:
    text = as_json(fields)
    text.encode("utf-8")
    assert json.loads(text, parse_constant=pytest.fail) == expected_json(fields)


# -- XML -----------------------------------------------------------------------------------------------


def test_xml_as_it_looks() -> None:
    memories = ListText([{"content": " two\nlines ", "tags": ["a", "b"]}], lambda _: "unused")
    fields = {"title": "A & B", "memories": memories, "my key": True, "none": None, "rows": {"x": [1.5]}, "data": [[1]]}
    assert as_xml("render", fields) == (
        '<?xml version="1.0"?>\n'
        "<render>\n"
        "  <title>A &amp; B</title>\n"
        "  <memories>\n"
        "    <memory>\n"
        "      <content> two\nlines </content>\n"
        "      <tags>\n"
        "        <tag>a</tag>\n"
        "        <tag>b</tag>\n"
        "      </tags>\n"
        "    </memory>\n"
        "  </memories>\n"
        '  <entry key="my key">true</entry>\n'
        "  <none />\n"
        "  <rows>\n"
        "    <x>\n"
        "      <item>1.5</item>\n"
        "    </x>\n"
        "  </rows>\n"
        "  <data>\n"
        "    <item>\n"
        "      <item>1</item>\n"
        "    </item>\n"
        "  </data>\n"
        "</render>"
    )


@each("name", ["xml", "XmlThing", "1a", "a b", "a:b", "é", "", "-a", "a>", 'a"<&\r\n\t\x00', "ſ"])
def test_names_that_cannot_be_elements_are_keys(name: str) -> None:
    root = ElementTree.fromstring(as_xml("render", {name: "v"}))
    assert [(child.tag, child.attrib, child.text) for child in root] == [("entry", {"key": xml_text(name)}, "v")]
    assert ElementTree.fromstring(as_xml(name, {})).attrib == {"key": xml_text(name)}


@each("text", ["\r", "a\r\nb\rc", " \n\t", "]]>", "<![CDATA[x]]>", "<!-- -->", "&amp;", "&#13;", "\x85\u2028"])
def test_text_comes_back_exactly(text: str) -> None:
    document = as_xml("render", {"x": text, "xs": [text]})
    root = ElementTree.fromstring(document)
    assert (root.findtext("x"), root.findtext("xs/x")) == (text, text)
    # A second parser, which builds its tree in its own way.
    node = minidom.parseString(document.encode("utf-8")).getElementsByTagName("x")[0]
    assert "".join(child.nodeValue or "" for child in node.childNodes) == text


@each("sign", ["\x00", "\x0b", "\x1f", "\ud800", "\udfff", "\ufffe", "\uffff"])
def test_what_xml_forbids_is_replaced(sign: str) -> None:
    root = ElementTree.fromstring(as_xml("render", {"x": f"a{sign}b", f"k {sign}": 1}))
    assert root.findtext("x") == "a\ufffdb"
    assert root[1].get("key") == "k \ufffd"


@given(FIELDS)
@example({"a": {"b": {}}, "memories": [[], "", None]})
def test_xml_gives_the_values_back(fields: dict[str, object]) -> None:
    root = ElementTree.fromstring(as_xml("render", fields).encode("utf-8"))
    assert root.tag == "render"
    compare(root, fields, "render")


# -- bounds --------------------------------------------------------------------------------------------


def nested(levels: int) -> object:
    value: object = "x"
    for _ in range(levels):
        value = [value]
    return value


def test_depth_is_limited() -> None:
    endless: dict[str, object] = {}
    endless["a"] = endless
    wide: list[object] = []
    wide += [wide, wide, wide]
    for write in (as_json, lambda fields: as_xml("render", fields)):
        assert "x" in write({"a": nested(60)})
        for value in (nested(70), nested(50_000), endless, wide):
            with pytest.raises(LimitExceeded, match="deeper than 64 levels"):
                write({"a": value})


@pytest.mark.slow
def test_the_number_of_values_is_limited() -> None:
    value: object = "x"
    for _ in range(20):
        value = [value, value]
    with pytest.raises(LimitExceeded, match="more than 1,000,000 values"):
        as_json({"a": value})


def test_a_number_too_long_to_write() -> None:
    for write in (as_json, lambda fields: as_xml("render", fields)):
        with pytest.raises(LimitExceeded, match="digits"):
            write({"a": 10**5000})
