"""Stored names are found in texts by their keys, and the work does not grow with the number of entities."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from cases import each
from cortex_py.core.graph_values import EntityType, keys_of
from cortex_py.parts.graph.reading.entity_names import KnownEntity
from cortex_py.parts.graph.reading.extract import MAX_CHARACTERS, extract
from cortex_py.parts.graph.reading.repetition import FEATURES, WEIGHTS_FILE


class Names:
    """Entities in memory, and what was asked for."""

    def __init__(self, *entities: KnownEntity, texts: Sequence[str] = ()) -> None:
        self._by_key: dict[str, list[KnownEntity]] = {}
        for entity in entities:
            for spelling in entity.spellings:
                for key in keys_of(spelling):
                    self._by_key.setdefault(key, []).append(entity)
        self._texts = texts
        self.asked: list[str] = []

    def find(self, keys: Collection[str]) -> Mapping[str, Sequence[KnownEntity]]:
        self.asked += keys
        return {key: self._by_key[key] for key in keys if key in self._by_key}

    def texts(self, word: str) -> Sequence[str]:
        return [text for text in self._texts if word.lower() in text.lower()]


def known(
    name: str, type: EntityType = "Technology", *, is_given: bool = True, is_repeated: bool = False
) -> KnownEntity:
    return KnownEntity(name, type, frozenset((name,)), is_given, is_repeated)


def found(text: str, *entities: KnownEntity) -> list[tuple[str, str, str]]:
    return [
        (text[one.start : one.end], one.name, one.type)
        for one in extract(text, known=Names(*entities)).entities
        if one.method == "dictionary:entity"
    ]


def test_a_match_has_the_entitys_name_where_the_key_differs() -> None:
    service = known("Checkout Service")
    assert found("two checkout services", service) == [("checkout services", "Checkout Service", "Technology")]
    assert found("one checkout-service", service) == [("checkout-service", "checkout-service", "Technology")]


def test_the_longest_name_wins() -> None:
    assert found("the Checkout Service", known("Checkout"), known("Checkout Service")) == [
        ("Checkout Service", "Checkout Service", "Technology")
    ]


def test_no_name_crosses_the_end_of_a_sentence_or_a_comma() -> None:
    service = known("Checkout Service")
    assert found("We looked at checkout. Service is back.", service) == []
    assert found("We looked at checkout, service and billing.", service) == []


@each(
    ("text", "is_repeated", "is_found"),
    [
        ("we asked Falcon for it", False, True),
        ("a falcon sat on the roof", False, False),
        ("falcon answered", False, False),
        ("a Falconry book", False, False),
    ],
)
def test_a_name_read_from_memories_is_not_every_ordinary_word(text: str, is_repeated: bool, is_found: bool) -> None:
    read = known("Falcon", is_given=False, is_repeated=is_repeated)
    assert bool(found(text, read)) is is_found


def test_a_repeated_name_counts_in_the_spelling_it_has() -> None:
    read = KnownEntity("Falcon", "Technology", frozenset(("Falcon", "falcon")), False, True)
    assert found("today falcon answered", read) == [("falcon", "falcon", "Technology")]


def test_an_unusual_word_counts_in_any_case() -> None:
    assert found("then quentrix failed", known("Quentrix", is_given=False)) == [("quentrix", "quentrix", "Technology")]


def test_the_keys_that_are_asked_for_grow_with_the_text_alone() -> None:
    sizes = []
    for repeats in (20, 40):
        names = Names()
        extract(" ".join(f"word{n} and some other thing number {n} is here." for n in range(repeats)), known=names)
        sizes.append(len(names.asked))
    assert sizes[1] < 2.5 * sizes[0]
    assert sizes[1] < 40 * 9 * 24


def test_a_word_is_a_name_if_other_texts_use_it_as_one() -> None:
    text = "On Friday we rolled Vosk back and wrote it down."
    texts = ["Yesterday Vosk failed, and we rolled Vosk back.", "They moved to Vosk in March."]
    assert "Vosk" in {one.name for one in extract(text, known=Names(texts=texts)).entities}
    assert "Vosk" not in {one.name for one in extract(text, known=Names(texts=[*texts, "what is a vosk?"])).entities}
    assert "Vosk" not in {one.name for one in extract(text, known=Names()).entities}


def test_a_repeated_word_is_a_name_by_how_the_text_uses_it() -> None:
    text = "# Marzipan\n\nMarzipan is a build tool. Install marzipan first.\n\nEach step of marzipan is a file.\n"
    named = [text[one.start : one.end].lower() for one in extract(text).entities if one.confidence >= 0.6]
    assert named.count("marzipan") == 4
    plain = "The garden is green. A garden needs water.\n\nWater is good for a garden."
    assert extract(plain).entities == ()


def test_the_weights_are_those_of_the_features() -> None:
    import json

    assert tuple(json.loads(WEIGHTS_FILE.read_text("utf-8"))["weights"]) == FEATURES


def test_names_are_found_again_after_the_part_that_is_read() -> None:
    start = "We moved the queue to PostgreSQL.\n\n" + "Nothing of note happens here. " * 700
    text = f"{start}\n\nIn the end PostgreSQL stays, not MyPostgreSQL.\n\n```\nPostgreSQL\n```\n"
    places = [one.start for one in extract(text).entities if one.name == "PostgreSQL"]
    assert len(start) > MAX_CHARACTERS
    assert places == [text.index("PostgreSQL"), text.index("PostgreSQL stays")]
