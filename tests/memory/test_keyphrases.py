"""Key phrases say what a note is about; tags are spelled one way and suggested once."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import each
from cortex_py.core.memory.labels.keyphrases import key_phrases, suggest_tags, tag_for
from timing import quick


def _phrases(text: str, most: int = 5) -> list[str]:
    return [found.phrase.lower() for found in key_phrases(text, most=most)]


@each(
    ("note", "expected"),
    [
        ("The message broker lost events because the consumer group had one offset for two topics.", "message broker"),
        ("Nightly exports time out. The export worker holds a table lock for the whole run.", "table lock"),
        ("We keep RabbitMQ for jobs and do not bring in a second broker.", "rabbitmq"),
        ("GitLab runners lose the cache between stages.", "gitlab runners"),
        ("Set `max_connections` to 200 before the traffic peak.", "max_connections"),
        ("Upgraded the Node.js client of the billing service.", "node.js client"),
        ("A dead letter queue holds what three retries could not deliver.", "dead letter queue"),
    ],
)
def test_the_subject_is_found(note: str, expected: str) -> None:
    assert expected in _phrases(note)


@each(
    ("note", "unwanted"),
    [
        (
            "He said that the parser should probably reject duplicates quickly.",
            {"said", "probably", "quickly", "reject"},
        ),
        ("The gateway rejects a token. We renew the certificate.", {"rejects", "renew"}),
        (
            "The proxy was dropping packets and they retried it 4000 times in 2024.",
            {"dropping", "retried", "4000", "2024"},
        ),
        ("Look at https://example.org/widgets/manual and mail ops@example.org about the kiln.", {"widgets", "ops"}),
        ("The digest is 9f86d081884c7d659a2feaa0c55ad015 for the archive.", {"9f86d081884c7d659a2feaa0c55ad015"}),
        ("Run `rm -rf build && make all` before the upload.", {"rm", "build", "make"}),
    ],
)
def test_what_is_no_subject_is_left_out(note: str, unwanted: set[str]) -> None:
    words = {word for phrase in _phrases(note, most=20) for word in phrase.split()}
    assert words and not words & unwanted


def test_a_secret_never_becomes_a_phrase() -> None:
    token = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
    note = f"The deploy key is {token} and password = Tr0ub4dorX and Tr0ub4dorY for the pipeline."
    shown = " ".join(_phrases(note, most=20)) + " ".join(suggest_tags(note, ()))
    assert "tr0ub4dory" in shown, "only what is assigned is a secret"
    assert "ghp" not in shown and "tr0ub4dorx" not in shown and "redacted" not in shown


def test_fenced_code_counts_only_where_the_prose_says_it_too() -> None:
    code = "```python\nFrobnicator\nFrobnicator\nwidget\n```"
    note = f"The widget is rebuilt at midnight.\n\n{code}\n"
    assert "widget" in _phrases(note)
    assert "frobnicator" in " ".join(_phrases(note.replace("```", "")))
    assert "frobnicator" not in " ".join(_phrases(note, most=20))


def test_a_phrase_has_at_most_three_words_and_no_two_share_one() -> None:
    phrases = _phrases("The payment provider sandbox account webhook endpoint rejects the payment callback.", most=20)
    words = [word for phrase in phrases for word in phrase.split()]
    assert phrases and max(len(phrase.split()) for phrase in phrases) <= 3
    assert len(words) == len(set(words))


def test_what_is_said_first_and_often_scores_more() -> None:
    early, late = "A scheduler was stopped.", "Somebody ate a sandwich."
    assert _phrases(f"{early} {late}", most=1) == ["scheduler"]
    assert _phrases(f"{late} {early}", most=1) == ["sandwich"]
    assert _phrases("The kiln broke. The oven ran. The oven is hot. The oven stays.", most=1) == ["oven"]


@pytest.mark.parametrize(
    ("note", "expected"),
    [
        ("Wir haben die Anmeldung auf Keycloak umgestellt, weil der alte Dienst nicht mehr gepflegt wird.", "keycloak"),
        ("Nous avons déplacé les sauvegardes vers MinIO parce que le disque était plein.", "minio"),
        ("我们把会话存储从 Redis 迁移到 PostgreSQL", "postgresql"),
    ],
)
def test_names_are_found_in_other_languages(note: str, expected: str) -> None:
    assert expected in _phrases(note)


@each(
    "note",
    [
        "",
        "   \n",
        "我们决定使用数据库连接池",
        "データベースの接続プールを増やしました。",
        "🎉🎉🎉",
        "42 1000 3.14",
        "and so it was then",
    ],
)
def test_nothing_is_better_than_nonsense(note: str) -> None:
    assert key_phrases(note) == ()
    assert suggest_tags(note, ()) == ()


def test_words_of_other_languages_are_no_phrases() -> None:
    found = _phrases(
        "Nous avons déplacé toutes les sauvegardes vers un disque externe parce que le serveur était plein.", most=20
    )
    assert found == []


@each(
    ("phrase", "tag"),
    [
        ("Connection Pool", "connection-pool"),
        ("PostgreSQL", "postgresql"),
        ("max_connections", "max-connections"),
        ("CI/CD", "ci-cd"),
        ("  Node.js ", "nodejs"),
        ("C++", "cpp"),
        ("c# client", "csharp-client"),
        ("user's cart!", "user-cart"),
        ("Größe", "größe"),
        ("--", None),
        ("2024", None),
        ("", None),
        ("x" * 41, None),
        ("9f86d081884c7d659a2feaa0c55ad015", None),
    ],
)
def test_the_form_of_a_tag(phrase: str, tag: str | None) -> None:
    assert tag_for(phrase) == tag


@settings(deadline=None)
@given(st.text(max_size=60))
def test_a_tag_is_short_lower_case_and_settled(phrase: str) -> None:
    tag = tag_for(phrase)
    if tag is not None:
        assert 0 < len(tag) <= 40 and tag == tag.lower()
        assert not set(tag) & set(" _.,:;!?'\"/\\()[]{}") and not tag.startswith("-") and "--" not in tag
        assert tag_for(tag) == tag


def test_names_come_before_phrases() -> None:
    note = "The connection pool in src/db.py was exhausted."
    assert suggest_tags(note, (), ["SQLAlchemy"]) == ("sqlalchemy", "connection-pool")


@each("existing", ["Connection Pool", "connection-pools", "connection_pool", "connectionpool"])
def test_a_tag_that_is_there_in_another_spelling_is_not_suggested(existing: str) -> None:
    note = "The connection pool was exhausted."
    assert suggest_tags(note, ()) == ("connection-pool",)
    assert suggest_tags(note, [existing]) == ()


def test_a_part_of_a_better_tag_is_not_suggested() -> None:
    assert suggest_tags("pool", (), ["connection pool", "pool"]) == ("connection-pool",)
    assert "pool" not in suggest_tags("The pool is empty. The pool is small.", ["connection-pool"])
    assert suggest_tags("", ["py"], ["Python"]) == ()


def test_there_are_at_most_five_new_tags_and_eight_in_all() -> None:
    names = ["Kafka", "Redis", "Flink", "Spark", "Airflow", "Trino", "Presto"]
    assert len(suggest_tags("", (), names)) == 5
    assert len(suggest_tags("", ["one", "two", "three", "four", "five", "six"], names)) == 2
    assert suggest_tags("", list("abcdefghi"), names) == ()


def test_a_secret_among_the_names_is_no_tag() -> None:
    assert suggest_tags("", (), ["ghp_16C7e42F292c6912E7710c838347Ae178B4a", "password=Tr0ub4dorX", "Vault"]) == (
        "vault",
    )


_VOCABULARY = """the Redis connection pool pools of Kafka src/app.py is broken, because Node.js C++ max_size .
caches cache caching API 42 für 数据库 🎉 `code` writes a token's Dockerfile boxes box"""
_WORDS = st.sampled_from(_VOCABULARY.split())
_NOTES = st.one_of(st.text(max_size=120), st.lists(_WORDS, max_size=25).map(" ".join))
_TAGS = st.lists(st.one_of(st.text(max_size=12), _WORDS), max_size=9)


@settings(deadline=None)
@given(_NOTES, _TAGS, _TAGS)
def test_asking_again_suggests_nothing_more(note: str, existing: list[str], names: list[str]) -> None:
    suggested = suggest_tags(note, existing, names)
    assert len(suggested) <= 5 and (not suggested or len(existing) + len(suggested) <= 8)
    assert suggest_tags(note, [*existing, *suggested], names) == ()


@settings(deadline=None)
@given(_NOTES)
def test_phrases_are_ordered_and_stand_in_the_note(note: str) -> None:
    found = key_phrases(note)
    assert [entry.score for entry in found] == sorted((entry.score for entry in found), reverse=True)
    for entry in found:
        assert entry.score > 0 and all(word in note for word in entry.phrase.split())
    assert key_phrases(note) == found


@each(
    "text",
    ["a" * 10**6, "`" * 10**6, "` (x " * 200_000, "x-" * 500_000, "a/" * 500_000, "word " * 200_000, "\n " * 500_000],
)
def test_long_text_is_read_in_no_time(text: str) -> None:
    quick(lambda: suggest_tags(text, ()), 2)


@each(
    ("note", "tags"),
    [
        ("The login endpoint returns 401 when the token is expired.", ("login-endpoint",)),
        ("The nightly job rebuilds the search index.", ("search-index",)),
        ("User sessions expire after 30 minutes.", ("user-sessions",)),
        ("The payment gateway rejects cards from Brazil.", ("payment-gateway", "brazil")),
        ("ok thanks", ()),
    ],
)
def test_a_tag_is_what_people_search_by_and_holds_no_verb(note: str, tags: tuple[str, ...]) -> None:
    assert suggest_tags(note, ()) == tags
