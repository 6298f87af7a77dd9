"""Claims about what a commit or a release changed, and what the changelog says of it; standing there, or before it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from grounding_changelog import Bullet, Section, changelog_path, sections
from grounding_facts import WORD, Definition, Project, flat, is_test
from grounding_scene import LabelledClaim, Place, Scene, noun, place

Claims = Iterator[LabelledClaim]
Fields = dict[str, Any]
_CODE = re.compile(r"`([A-Za-z_][\w.]*)(\(\))?`")
_LONGEST = 220
_AFTER = re.compile(r"(?<=[a-z`)]\.)\s")
_NUMBER = re.compile(r"^(?:#\d+|`#\d+`\S*):?\s+")


def _new(later: Project, earlier: Project) -> Callable[[Definition], bool]:
    """Whether a definition of the later project was in no word of the earlier one."""
    gone = earlier.words

    def is_new(one: Definition) -> bool:
        return flat(one.name) not in gone and one.path in later.paths and not is_test(one.path)

    return is_new


def added(scene: Scene) -> Claims:
    if scene.before is not None:
        fresh = list(filter(_new(scene.project, scene.before.project), scene.symbols()))
        for one in fresh:
            fields: Fields = {"name": scene.name(one), "file": scene.file(one.path), "noun": noun(one)}
            same = [each for each in scene.project.defined[one.name] if each.qualified == one.qualified]
            where = (Place(commit=scene.project.commit), *place(*same))
            yield scene.say("added", True, places=where, **fields)
            if (other := scene.other_name(one.name)) is not None:
                yield scene.say("added", False, change="name", **fields | {"name": scene.name(one, other)})
            if (source := scene.elsewhere(one)) is not None and one.name not in source.words:
                yield scene.say("added", False, change="file", **fields | {"file": scene.file(source.path)})
    if scene.after is not None:
        later = scene.after.project
        for one in filter(_new(later, scene.project), scene.symbols(later)):
            if flat(one.name) in scene.project.words:
                continue
            name = one.qualified if one.owner else one.name
            fields = {"name": scene.code(name), "file": scene.file(one.path, later), "noun": noun(one)}
            yield scene.say("added", False, change="time", **fields)


def removed(scene: Scene) -> Claims:
    """What is taken out, with `no longer`: false where it is there yet, or still."""
    if scene.before is None:
        return
    before, now = scene.before.project, scene.project
    is_removed = _new(before, now)
    for one in filter(is_removed, scene.symbols(before)):
        if one.path not in now.files:
            continue
        name = scene.code(one.qualified if one.owner else one.name)
        fields: Fields = {"name": name, "file": scene.file(one.path), "noun": noun(one)}
        where = (Place(commit=now.commit),)
        for family in ("removed", "gone"):
            yield scene.say(family, True, "removed", None, where, **fields)
    for one in scene.symbols():
        if one.path in before.sources and any(other.path == one.path for other in before.defined.get(one.name, ())):
            fields = {"name": scene.name(one), "file": scene.file(one.path), "noun": noun(one)}
            family = scene.random.choice(("removed", "gone"))
            yield scene.say(family, False, "removed", "polarity", **fields)
    if scene.after is not None:
        later = scene.after.project
        for one in filter(_new(now, later), scene.symbols()):
            fields = {"name": scene.name(one), "file": scene.file(one.path), "noun": noun(one)}
            family = scene.random.choice(("removed", "gone"))
            yield scene.say(family, False, "removed", "time", **fields)


def _first_of_series(version: str) -> bool:
    return version.count(".") == 1 or version.endswith(".0")


def introduced(scene: Scene) -> Claims:
    if scene.before is None or scene.version is None or scene.before.version is None:
        return
    place_of_log = changelog_path(scene.project.paths)
    log = sections(scene.project.files.get(place_of_log or "", ""))
    named = {part.version: frozenset(WORD.findall(part.body)) for part in log}
    if _first_of_series(scene.version):
        for one in filter(_new(scene.project, scene.before.project), scene.symbols()):
            told = {version for version, words in named.items() if one.name in words}
            if told - {scene.version} or len(scene.project.defined[one.name]) > 1:
                continue
            fields: Fields = {"name": scene.name(one), "noun": noun(one)}
            where = (Place(commit=scene.project.commit), *place(one))
            yield scene.say("introduced", True, places=where, version=scene.version, **fields)
            old = scene.before.version
            yield scene.say("introduced", False, change="version", version=old, **fields)
    for one in scene.symbols():
        early = scene.history[0].project.defined.get(one.name, ())
        if not is_test(one.path) and early and scene.at > 1 and one.name in scene.before.project.defined:
            fields = {"name": scene.name(one), "noun": noun(one)}
            yield scene.say("introduced", False, change="version", version=scene.version, **fields)
    if scene.after is not None and scene.after.version is not None:
        for one in filter(_new(scene.after.project, scene.project), scene.symbols(scene.after.project)):
            name = scene.code(one.qualified if one.owner else one.name)
            yield scene.say("introduced", False, change="time", version=scene.after.version, name=name, noun=noun(one))


def modified(scene: Scene) -> Claims:
    """Which files a release or a commit changed."""
    for at in range(max(1, scene.at - 1), scene.at + 1):
        now, before = scene.history[at].project, scene.history[at - 1].project
        version = scene.history[at].version
        both = [path for path in now.files if path in before.files and path in scene.project.files and "." in path]
        changed = [path for path in both if now.files[path] != before.files[path]]
        same = [path for path in both if now.files[path] == before.files[path] and now.files[path].strip()]
        for true, paths in ((True, changed), (False, same)):
            for path in scene.random.sample(paths, len(paths)):
                commit = scene.code(now.commit[: scene.random.choice((7, 8, 10))])
                certain = version is not None and _first_of_series(version) and scene.random.random() < 0.7
                family = "modified" if certain else "touched"
                where = (Place(commit=now.commit),) if true else ()
                fields: Fields = {"file": scene.file(path), "version": version or "", "commit": commit}
                yield scene.say(family, true, "modified", None if true else "file", where, **fields)


def changelog(scene: Scene) -> Claims:
    """Sentences of the sections that this commit brought, which name something that is defined; else changed ones."""
    if scene.before is None:
        return
    yield from _told(scene, scene.project, scene.before.project, now=True)
    if scene.after is not None:
        yield from _told(scene, scene.after.project, scene.project, now=False)


def _told(scene: Scene, later: Project, earlier: Project, *, now: bool) -> Claims:
    path = changelog_path(later.paths)
    if path is None or path not in later.files:
        return
    parts = sections(later.files[path])
    old = changelog_path(earlier.paths)
    known = {part.version for part in sections(earlier.files.get(old or "", ""))}
    if not known:
        return
    for part in parts:
        if part.version in known:
            continue
        for bullet in scene.random.sample(part.bullets, len(part.bullets)):
            sentence = _AFTER.split(_NUMBER.sub("", bullet.text))[0]
            names = [match for match in _CODE.finditer(sentence) if _spoken(match[1].split(".")[-1], later)]
            if not names or len(sentence) > _LONGEST or len(sentence) < 25 or sentence.count("`") % 2:
                continue
            sentence = sentence if sentence.endswith((".", "!")) else sentence + "."
            name = names[0][1].split(".")[-1]
            if now:
                yield from _sentences(scene, sentence, name, Place(path, bullet.first, bullet.last), part, parts)
            elif flat(name) not in earlier.words and not _mentioned(earlier, bullet):
                yield LabelledClaim(sentence, False, "changelog", "time")
                yield scene.say(
                    "changelog_version", False, "changelog", "time", sentence=sentence, version=part.version
                )


def _sentences(scene: Scene, sentence: str, name: str, where: Place, part: Section, parts: list[Section]) -> Claims:
    places = (where, Place(commit=scene.project.commit), *place(*scene.project.defined[name]))
    yield LabelledClaim(sentence, True, "changelog", None, places)
    yield scene.say("changelog_version", True, "changelog", None, places, sentence=sentence, version=part.version)
    if (other := scene.other_name(name)) is not None:
        lie = re.sub(rf"(?<=[`.]){re.escape(name)}(?=[`(.])", other, sentence)
        yield LabelledClaim(lie, False, "changelog", "name")
    free = [one.version for one in parts if not re.search(rf"\b{re.escape(name)}\b", one.body) and one.body]
    free = [version for version in free[:12] if version != part.version]
    if free:
        wrong = scene.random.choice(free)
        yield scene.say("changelog_version", False, "changelog", "version", sentence=sentence, version=wrong)


def _spoken(name: str, project: Project) -> bool:
    return name in project.defined and len(name) > 3 and not name.startswith("__")


def _mentioned(project: Project, bullet: Bullet) -> bool:
    return any(bullet.text[:40] in text for text in project.files.values())


FAMILIES: tuple[Callable[[Scene], Claims], ...] = (added, removed, introduced, modified, changelog)
