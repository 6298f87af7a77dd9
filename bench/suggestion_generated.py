"""Generated histories, for a measure that does not hang on a few projects: topics, drift, noise. From fixed seeds.

Each project has topics of some files each and words of their own. Work stays with a topic for a while and moves on,
new topics begin and old ones rest, files change their topic now and then, some files go with everything, and a part of
every commit is chance. What is said of a commit names its topic by some words, but hardly ever its files.
"""

from __future__ import annotations

import random

from suggestion_histories import History, Step

_VERBS = ("Fix", "Add", "Rework", "Test", "Document", "Speed up", "Simplify", "Support")
_SYLLABLES = [c + v for c in "bdfgklmnprstvz" for v in "aeiou"]
_TOPICS = 12
_FILES = 9
_COMMON = 4


def generated(number: int, commits: int) -> History:
    lot = random.Random(1_000 + number)

    def word() -> str:
        return "".join(lot.choice(_SYLLABLES) for _ in range(lot.choice((2, 3, 3))))

    topics = [[word() for _ in range(8)] for _ in range(_TOPICS)]
    files: list[list[str]] = []
    texts: dict[str, str] = {}
    for place, words in enumerate(topics):
        files.append([])
        for _ in range(_FILES):
            # A third of the files say nothing of what they are used for.
            told = words if lot.random() < 0.67 else topics[lot.randrange(_TOPICS)]
            path = f"src/{words[0]}/{word()}{len(texts)}.py"
            texts[path] = f"{path}\nHandles {told[1]} {word()}\n{word()} {lot.choice(told)} {word()} {word()}"
            files[place].append(path)
    common = [f"{word()}.md" for _ in range(_COMMON)]
    texts |= {path: f"{path}\n{word()} {word()} {word()}" for path in common}
    steps = []
    topic = 0
    for at in range(commits):
        alive = range(max(0, at * _TOPICS // commits - 4), max(4, min(_TOPICS, 4 + at * _TOPICS // commits)))
        if topic not in alive or lot.random() < 0.35:
            topic = lot.choice(alive)
        if lot.random() < 0.03:
            # A file moves to another topic.
            other = lot.randrange(_TOPICS)
            files[other].append(files[topic].pop(lot.randrange(len(files[topic]))))
            if len(files[topic]) < 4:
                files[topic].append(files[other].pop(0))
        # The first files of a topic go together more often than its last.
        weights = [1.0 / (1 + place) ** 0.7 for place in range(len(files[topic]))]
        changed = set(lot.choices(files[topic], weights, k=lot.choice((1, 2, 2, 3, 3, 4, 5))))
        if lot.random() < 0.3:
            changed.add(lot.choice(common))
        if lot.random() < 0.25:
            changed.add(lot.choice(sorted(texts)))
        order = sorted(changed)
        lot.shuffle(order)
        said = [*lot.sample(topics[topic], 2), word(), lot.choice(topics[lot.choice(alive)])]
        steps.append(Step(f"{lot.choice(_VERBS)} {' '.join(said)}", tuple(order)))
    return History(f"generated {number + 1}", tuple(steps), texts)
