"""Claims about how a project is at a commit, true ones and ones made false by one controlled change."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath
from typing import Any

from grounding_facts import SCRIPTS, Definition, Source, flat, is_test
from grounding_scene import NUMBERS, LabelledClaim, Place, Scene, noun, place

Claims = Iterator[LabelledClaim]
Fields = dict[str, Any]
_STRANGERS = {
    "python": (
        "requests", "numpy", "pandas", "django", "sqlalchemy", "celery", "redis", "boto3", "lxml", "pillow", "tornado",
        "orjson", "msgpack", "marshmallow", "peewee", "gevent", "paramiko", "psycopg2", "pymongo", "aiohttp",
    ),
    "npm": (
        "lodash", "moment", "vue", "jquery", "underscore", "bluebird", "rxjs", "dayjs", "yargs", "ramda", "mongoose",
        "sequelize", "knex", "winston", "pino", "got", "luxon", "nanoid", "ioredis", "fastify",
    ),
}  # fmt: skip
_ERRORS = ("ZeroDivisionError", "RecursionError", "PermissionError", "FloatingPointError", "BufferError", "EOFError")
_ANYWHERE = frozenset({"Exception", "BaseException", "KeyboardInterrupt", "SystemExit", "AssertionError"})
_SPOKEN_LIMIT = re.compile(r"^>=(\d[\w.]*)$")


def symbol(scene: Scene) -> Claims:
    for one in scene.symbols():
        fields: Fields = {"noun": noun(one)}
        same = [each for each in scene.project.defined[one.name] if (each.path, each.owner) == (one.path, one.owner)]
        told = scene.name(one)
        yield scene.say("symbol", True, places=place(*same), name=told, file=scene.file(one.path), **fields)
        if (other := scene.other_name(one.name)) is not None:
            lie = scene.name(one, other)
            yield scene.say("symbol", False, change="name", name=lie, file=scene.file(one.path), **fields)
        if (source := scene.elsewhere(one)) is not None:
            fields |= {"name": scene.name(one), "file": scene.file(source.path)}
            yield scene.say("symbol", False, change="file", only=scene.only(one, source), **fields)


def absence(scene: Scene) -> Claims:
    """That something is not there: the same facts, stated the other way round."""
    for one in scene.symbols():
        fields: Fields = {"noun": noun(one)}
        source = scene.elsewhere(one)
        if source is not None:
            there: Fields = fields | {"name": scene.name(one), "file": scene.file(source.path)}
            yield scene.say("absent", True, "absence", only=scene.only(one, source), **there)
        told = scene.name(one)
        yield scene.say("absent", False, "absence", "polarity", name=told, file=scene.file(one.path), **fields)
        other = scene.other_name(one.name)
        if other is not None and len(scene.project.defined[one.name]) == 1:
            lie = scene.code(other)
            yield scene.say("nowhere", True, "absence", name=lie, **fields)
            yield scene.say("nowhere", False, "absence", "polarity", name=scene.name(one), **fields)


def signature(scene: Scene) -> Claims:
    every = sorted({given.name for one in scene.functions() for given in one.parameters if len(given.name) > 2})
    for one in scene.functions():
        group = scene.group(one) if not one.is_property else []
        if not group or len(one.name) < 4:
            continue
        named = {given.name for other in group for given in other.parameters}
        fields: Fields = {"name": scene.name(one), "file": scene.file(one.path), "noun": noun(one)}
        spoken = [given for given in one.parameters if len(given.name) > 2 and not given.name.startswith("_")]
        if spoken:
            given = scene.random.choice(spoken)
            param = scene.code(given.name)
            yield scene.say("parameter", True, "signature", None, place(*group), param=param, **fields)
        closed = not any(other.open_ended or other.opaque for other in group)
        free = [name for name in every if name not in named]
        if closed and one.parameters and free:
            lie = scene.random.choice(free)
            if spoken and scene.random.random() < 0.5:
                lie = scene.other_name(scene.random.choice(spoken).name) or lie
            yield scene.say("parameter", False, "signature", "name", param=scene.code(lie), **fields)
        yield from _defaults(scene, one, group, fields)
        plain = len(group) == 1 and one.owner is None and not one.decorators and closed and one.path.endswith(".py")
        if plain and 1 < len(one.parameters) < 9:
            count = len(one.parameters)
            wrong = count + scene.random.choice([step for step in (-2, -1, 1, 2, 3) if 1 < count + step < 11])
            yield scene.say("arity", True, "signature", None, place(one), count=_count(scene, count), **fields)
            yield scene.say("arity", False, "signature", "number", count=_count(scene, wrong), **fields)


def _count(scene: Scene, number: int) -> str:
    return NUMBERS[number] if scene.random.random() < 0.6 else str(number)


def _defaults(scene: Scene, one: Definition, group: list[Definition], fields: Fields) -> Claims:
    valued = [given for given in one.parameters if given.default is not None and len(given.name) > 2]
    if not valued:
        return
    numbered = [given for given in valued if re.search(r"\d", given.default or "")]
    given = scene.random.choice(numbered or valued)
    written = given.default or ""
    param = scene.code(given.name)
    same = [other.default for each in group for other in each.parameters if other.name == given.name]
    if all(other == written for other in same):
        shown = scene.value(written)
        yield scene.say("default", True, "default", None, place(*group), param=param, value=shown, **fields)
    changed = scene.other_value(written, {str(other) for other in same})
    if changed is not None and None not in same:
        shown = scene.value(changed[0])
        yield scene.say("default", False, "default", changed[1], param=param, value=shown, **fields)


def method(scene: Scene) -> Claims:
    methods = [one for one in scene.functions() if one.kind.endswith("method") and not one.is_property]
    names = sorted({one.name for one in methods if not one.name.startswith("__")})
    members: dict[str, set[str]] = defaultdict(set)
    for one in (each for ones in scene.project.defined.values() for each in ones):
        members[one.owner or ""].add(one.name)
    for one in methods:
        owners = scene.project.defined.get(one.owner or "", [])
        if one.name.startswith("__") or len(owners) != 1 or owners[0].kind != "class":
            continue
        owner = owners[0]
        fields: Fields = {"owner": scene.code(owner.name), "file": scene.file(one.path)}
        has = scene.code(one.name + "()" if scene.random.random() < 0.3 else one.name)
        yield scene.say("method", True, places=(*place(one), *place(owner)), name=has, **fields)
        resolved = not owner.open_ended and not owner.opaque
        inside = members[owner.name]
        if resolved and (other_name := scene.other_name(one.name)) is not None:
            yield scene.say("method", False, change="name", name=scene.code(other_name), **fields)
        free = [name for name in names if name not in inside]
        written = scene.project.body(owner)
        free = [name for name in free if name not in written]
        if resolved and not set(owner.bases) - {"object"} and free:
            yield scene.say("method", False, change="name", name=scene.code(scene.random.choice(free)), **fields)


def inherits(scene: Scene) -> Claims:
    classes = {
        name: ones[0]
        for name, ones in scene.project.defined.items()
        if len(ones) == 1 and ones[0].kind == "class" and len(name) > 3 and not is_test(ones[0].path)
    }
    for one in scene.shuffled(list(classes.values())):
        bases = [base for base in one.bases if base not in ("object", "Generic", "Protocol")]
        if not bases:
            continue
        fields: Fields = {"name": scene.code(one.name), "file": scene.file(one.path)}
        base = scene.code(scene.random.choice(bases))
        yield scene.say("inherits", True, places=place(one), base=base, **fields)
        above = scene.project.ancestors(one.name) | {one.name}
        free = sorted(name for name in classes if name not in above)
        if one.opaque or not free:
            continue
        near = [name for name in free if classes[name].path == one.path]
        lie = scene.random.choice(near if near and scene.random.random() < 0.6 else free)
        yield scene.say("inherits", False, change="name", base=scene.code(lie), **fields)
        parent = classes.get(bases[0])
        if parent is not None and not parent.opaque and one.name not in scene.project.ancestors(parent.name):
            turned: Fields = {"name": scene.code(parent.name), "file": scene.file(parent.path), "base": fields["name"]}
            yield scene.say("inherits", False, change="name", **turned)


def file(scene: Scene) -> Claims:
    paths = [path for path in scene.project.paths if re.match(r"\w+\.|[A-Z]{4}", PurePosixPath(path).name)]
    for path in scene.random.sample(paths, len(paths)):
        yield scene.say("file", True, places=(Place(path, 1, 10**9),), file=scene.file(path))
        pure = PurePosixPath(path)
        other = scene.other_name(pure.stem) if re.fullmatch(r"[\w-]{3,}", pure.stem) else None
        if other is not None and pure.suffix:
            made = pure.with_name(other + pure.suffix)
            told = made.name if scene.random.random() < 0.4 else made.as_posix()
            yield scene.say("file", False, change="name", file=scene.code(told))


def constant(scene: Scene) -> Claims:
    for one in scene.symbols():
        alike = scene.project.defined[one.name]
        if one.kind != "constant" or one.value is None or len(alike) != 1 or is_test(one.path):
            continue
        if one.value.startswith(("True", "False", "None")):
            continue
        fields: Fields = {"name": scene.code(one.name), "file": scene.file(one.path)}
        yield scene.say("constant", True, places=place(one), value=scene.value(one.value), **fields)
        if (changed := scene.other_value(one.value, {one.value})) is not None:
            yield scene.say("constant", False, change=changed[1], value=scene.value(changed[0]), **fields)


def dependency(scene: Scene) -> Claims:
    declared = scene.project.dependencies
    for one in scene.random.sample(declared, len(declared)):
        if one.group == "locked":
            continue
        runtime = one.group == "runtime"
        fields: Fields = {"dep": scene.code(one.name), "file": scene.file(one.path)}
        where = tuple(Place(each.path, each.line, each.line) for each in declared if flat(each.name) == flat(one.name))
        only = "" if runtime else "{file}"
        yield scene.say("dependency", True, places=where, only=only, **fields)
        strangers = _STRANGERS["npm" if one.path == "package.json" else "python"]
        free = [name for name in strangers if flat(name) not in scene.known]
        if free:
            lie: Fields = fields | {"dep": scene.code(scene.random.choice(free))}
            yield scene.say("dependency", False, change="name", only=only, **lie)
        if not one.constraint or one.constraint.count(",") > 1:
            continue
        fields |= {"only": only}
        limit = _limit(scene, one.constraint)
        yield scene.say("dependency_version", True, "dependency", None, where, limit=limit, **fields)
        taken = {each.constraint for each in declared if flat(each.name) == flat(one.name)}
        numbers = list(re.finditer(r"\d+", one.constraint))
        number = scene.random.choice(numbers[:2])
        changed = scene.other_number(number[0], set())
        lie_limit = one.constraint[: number.start()] + str(changed) + one.constraint[number.end() :]
        if changed is not None and lie_limit not in taken:
            limit = _limit(scene, lie_limit)
            yield scene.say("dependency_version", False, "dependency", "version", limit=limit, **fields)


def _limit(scene: Scene, constraint: str) -> str:
    match = _SPOKEN_LIMIT.match(constraint)
    if match and scene.random.random() < 0.4:
        return f"{match[1]} or {scene.random.choice(('newer', 'later', 'higher'))}"
    return scene.code(constraint)


def version(scene: Scene) -> Claims:
    told = scene.project.versions
    texts = {one[0] for one in told}
    if len(texts) != 1:
        return
    others = [other.version for other in scene.history if other.version and other.version not in texts]
    current = told[0][0]
    bumped = scene.other_number(current.split(".")[1], set())
    others.append(".".join([current.split(".")[0], str(bumped), *current.split(".")[2:]]))
    where = tuple(Place(path, line, line) for _, path, line in told)
    for _ in range(4):
        name = scene.file(scene.random.choice(told)[1])
        yield scene.say("version", True, places=where, version=current, file=name)
        yield scene.say("version", False, change="version", version=scene.random.choice(others), file=name)


def imports(scene: Scene) -> Claims:
    sources = [one for one in scene.project.sources.values() if one.imports and not is_test(one.path)]
    everything = sorted({module for one in sources for module in one.imports if _plain(module)})
    for one in scene.random.sample(sources, len(sources)):
        modules = [module for module in one.imports if _plain(module)]
        fields: Fields = {"file": scene.file(one.path)}
        if modules:
            module = scene.random.choice(modules)
            where = tuple(Place(one.path, line, line) for line in one.imports[module])
            yield scene.say("import", True, places=where, module=scene.code(module), **fields)
            far = [other for other in sources if not _has(other, module)]
            if far:
                wrong = scene.file(scene.random.choice(far).path)
                yield scene.say("import", False, change="file", module=scene.code(module), file=wrong)
        free = [module for module in everything if not _has(one, module)]
        if free:
            yield scene.say("import", False, change="name", module=scene.code(scene.random.choice(free)), **fields)


def _plain(module: str) -> bool:
    return module != "__future__" and bool(re.search(r"\w", module)) and not module.startswith((".", ".."))


def _has(source: Source, module: str) -> bool:
    """Whether a file may be said to import a module, in any way."""
    mine = {part for name in source.imports for part in re.split(r"[./]", name)} | source.bound
    wanted = [part for part in re.split(r"[./]", module) if part]
    named = wanted[0] if not source.path.endswith(SCRIPTS) else wanted[-1]
    return wanted[0] in mine or wanted[-1] in mine or named in source.words


def raises(scene: Scene) -> Claims:
    """What a function raises itself. What it calls may raise any general error: of those only a `raise` is denied."""
    pool = sorted({name for one in scene.functions() for name, _ in one.raises} - _ANYWHERE)
    for one in scene.functions():
        if len(scene.group(one)) != 1 or not one.raises or len(one.name) < 4:
            continue
        fields: Fields = {"name": scene.name(one), "file": scene.file(one.path), "noun": noun(one)}
        error, _ = scene.random.choice(one.raises)
        where = tuple(Place(one.path, line, line) for name, line in one.raises if name == error)
        family = scene.random.choice(("raises", "raises_explicitly"))
        yield scene.say(family, True, "raises", None, (*where, *place(one)), error=scene.code(error), **fields)
        if one.opaque:
            continue
        source, body, far = scene.project.sources[one.path], scene.project.body(one), scene.project.reached(one)
        above = {error}.union(*(scene.project.ancestors(name) | {name} for name, _ in one.raises))
        free = [name for name in pool if name not in above and error not in scene.project.ancestors(name)]
        own = [name for name in free if name in scene.project.defined and name not in far | source.words]
        own = own or [name for name in _ERRORS if name not in source.words]
        general = [name for name in free if name not in scene.project.defined and name not in body]
        for family, choices in (("raises", own), ("raises_explicitly", general)):
            if choices:
                lie = scene.code(scene.random.choice(choices))
                yield scene.say(family, False, "raises", "name", error=lie, **fields)


def decorators(scene: Scene) -> Claims:
    pool = sorted({mark for one in scene.functions() for mark in one.decorators if mark != "overload"})
    for one in scene.functions():
        if len(scene.group(one)) != 1 or len(one.name) < 4:
            continue
        fields: Fields = {"name": scene.name(one), "file": scene.file(one.path), "noun": noun(one)}
        if one.decorators:
            mark = "@" + scene.random.choice(one.decorators)
            yield scene.say("decorator", True, places=place(one), mark=scene.code(mark), **fields)
            free = [name for name in pool if name not in one.decorators]
            if free and not one.opaque:
                lie = "@" + scene.random.choice(free)
                yield scene.say("decorator", False, change="name", mark=scene.code(lie), **fields)


def asynchrony(scene: Scene) -> Claims:
    functions = [one for one in scene.functions() if len(scene.group(one)) == 1 and not one.is_property]
    waiting = [one for one in functions if one.kind.startswith("async")]
    plain = [one for one in functions if not one.kind.startswith("async") and one.name != "__init__"]
    forms = (("asynchronous", "an async"), ("synchronous", "a synchronous"))
    for one, other in zip(waiting, plain, strict=False):
        for each, (right, wrong) in ((one, forms), (other, forms[::-1])):
            fields: Fields = {"name": scene.name(each), "file": scene.file(each.path), "noun": noun(each)}
            told: Fields = fields | {"manner": right[0], "article": right[1], "other": wrong[0]}
            yield scene.say("async", True, places=place(each), **told)
            lie: Fields = fields | {"manner": wrong[0], "article": wrong[1], "other": right[0]}
            yield scene.say("async", False, change="polarity", **lie)


FAMILIES: tuple[Callable[[Scene], Claims], ...] = (
    symbol, absence, signature, method, inherits, file, constant, dependency, version, imports, raises, decorators,
    asynchrony,
)  # fmt: skip
