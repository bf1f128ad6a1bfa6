"""Where a line of the core may be made wrong, and how: found in the syntax tree, so that what comes of it is Python.

Each place is one line and stays one. Nothing is changed in assertions, annotations and texts, nor outside of functions.
"""

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

PACKAGES = ("partition", "log", "quorum", "controller", "coordinator", "metadata", "broker")
COMPARISON, SUM, NEGATED, DROPPED = "comparison", "sum", "condition negated", "call dropped"
SMALLEST, BOOLEAN, EARLY, CONSTANT = "min and max", "and and or", "return early", "constant"

OPPOSITES: dict[type[ast.cmpop], tuple[str, tuple[str, ...]]] = {
    ast.Lt: ("<", ("<=", ">=")),
    ast.LtE: ("<=", ("<", ">")),
    ast.Gt: (">", (">=", "<=")),
    ast.GtE: (">=", (">", "<")),
    ast.Eq: ("==", ("!=",)),
    ast.NotEq: ("!=", ("==",)),
    ast.In: ("in", ("not in",)),
    ast.NotIn: ("not in", ("in",)),
}
COUNTED = re.compile(r"(offset|epoch|position|count|sequence|index|number|_ms|_bytes|end|start)$")
"""Names of what can be one more or one less."""
HARMLESS = {
    "len",
    "min",
    "max",
    "sum",
    "abs",
    "int",
    "float",
    "bool",
    "set",
    "sorted",
    "any",
    "all",
    "isinstance",
    "range",
}
"""What may be called once more to see whether a change makes a difference."""
NOT_CODE = (ast.Assert, ast.JoinedStr, ast.Raise)


@dataclass(frozen=True, slots=True)
class Place:
    path: str
    """Below src/klamm."""
    function: str
    line: int
    begin: int
    end: int
    """In bytes, within the line."""
    kind: str
    before: str
    after: str
    is_statement: bool
    is_harmless: bool
    """Whether both may be computed, to see whether they differ."""

    def described(self) -> str:
        return f"{self.path} {self.function}: `{self.before}` → `{self.after}`"


def replaced(source: str, texts: Iterable[tuple[Place, str]]) -> str:
    """The source with other texts in these places, which do not overlap."""
    lines = source.encode().splitlines(keepends=True)
    for place, text in sorted(texts, key=lambda each: (each[0].line, each[0].begin), reverse=True):
        line = lines[place.line - 1]
        assert line[place.begin : place.end].decode() == place.before, f"{place} is not there"
        lines[place.line - 1] = line[: place.begin] + text.encode() + line[place.end :]
    return b"".join(lines).decode()


def places(root: Path, executed: dict[str, list[int]]) -> list[Place]:
    """All of the files of the core, as far as these lines go."""
    found = []
    for package in PACKAGES:
        for file in sorted((root / package).rglob("*.py")):
            path = str(file.relative_to(root))
            lines = set(executed.get(path, ()))
            found += [place for place in places_in(path, file.read_text()) if place.line in lines]
    return found


def places_in(path: str, source: str) -> list[Place]:
    finder = _Finder(path, source)
    finder.visit(ast.parse(source))
    return finder.found


def drawn(found: list[Place], seed: int, count: int) -> list[Place]:
    """One package after the other; in each a kind, and of that one place. Never two in one function."""
    random = Random(f"mutants {seed}")
    chosen: list[Place] = []
    for number in range(count):
        package = PACKAGES[number % len(PACKAGES)]
        functions = {(place.path, place.function) for place in chosen}
        left = [
            place
            for place in found
            if place.path.startswith(f"{package}/") and (place.path, place.function) not in functions
        ]
        kind = random.choice(sorted({place.kind for place in left}))
        chosen.append(random.choice([place for place in left if place.kind == kind]))
    return chosen


class _Finder(ast.NodeVisitor):
    def __init__(self, path: str, source: str) -> None:
        self._path = path
        self._lines = source.encode().splitlines()
        self._functions: list[str] = []
        self._returns_nothing = False
        self.found: list[Place] = []

    # Where we are.

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._functions.append(node.name)
        for each in node.body:
            if isinstance(each, ast.FunctionDef | ast.ClassDef):
                self.visit(each)
        self._functions.pop()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        if node.name in ("__repr__", "__str__"):
            return
        before = self._returns_nothing
        self._returns_nothing = isinstance(node.returns, ast.Constant) and node.returns.value is None
        self._functions.append(node.name)
        for each in node.body:
            self.visit(each)
        self._functions.pop()
        self._returns_nothing = before

    def visit_Module(self, node: ast.Module) -> None:
        for each in node.body:
            if isinstance(each, ast.FunctionDef | ast.ClassDef):
                self.visit(each)

    def visit(self, node: ast.AST) -> None:
        if isinstance(node, NOT_CODE):
            return
        if isinstance(node, ast.AnnAssign):
            if node.value is not None:
                self.visit(node.value)
            return
        for kind, part, after in self._changes(node):
            self._note(kind, part, after)
        super().visit(node)

    # What could be wrong there.

    def _changes(self, node: ast.AST) -> Iterator[tuple[str, ast.expr | ast.stmt, str]]:
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in OPPOSITES:
            for other in OPPOSITES[type(node.ops[0])][1]:
                yield COMPARISON, node, f"{self._side(node.left)} {other} {self._side(node.comparators[0])}"
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub) and _is_number(node):
            sign = "-" if isinstance(node.op, ast.Add) else "+"
            yield SUM, node, f"{self._side(node.left)} {sign} {self._side(node.right)}"
        elif isinstance(node, ast.BoolOp):
            word = " or " if isinstance(node.op, ast.And) else " and "
            yield BOOLEAN, node, word.join(f"({self._text(value)})" for value in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, int):
            others = (not node.value,) if isinstance(node.value, bool) else (node.value + 1, node.value - 1)
            for value in others:
                yield CONSTANT, node, str(value)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("min", "max"):
            other = "max" if node.func.id == "min" else "min"
            yield SMALLEST, node, other + self._text(node)[len(node.func.id) :]
        if isinstance(node, ast.If | ast.IfExp | ast.While) and not isinstance(node.test, ast.Constant):
            yield NEGATED, node.test, f"not ({self._text(node.test)})"
        if isinstance(node, ast.comprehension):
            for test in node.ifs:
                yield NEGATED, test, f"not ({self._text(test)})"
        if isinstance(node, ast.Call | ast.Return | ast.Assign):
            parts = node.args if isinstance(node, ast.Call) else [node.value]
            for part in parts:
                if isinstance(part, ast.Name | ast.Attribute) and COUNTED.search(self._text(part)):
                    yield SUM, part, f"({self._text(part)} + 1)"
                    yield SUM, part, f"({self._text(part)} - 1)"
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and "super()" not in self._text(node):
            yield DROPPED, node, "pass"
        if isinstance(node, ast.Expr | ast.Assign | ast.AugAssign) and self._returns_nothing and not _is_text(node):
            yield EARLY, node, "return"

    def _note(self, kind: str, node: ast.expr | ast.stmt, after: str) -> None:
        if node.lineno != node.end_lineno:
            return
        assert node.end_col_offset is not None
        self.found.append(
            Place(
                path=self._path,
                function=".".join(self._functions),
                line=node.lineno,
                begin=node.col_offset,
                end=node.end_col_offset,
                kind=kind,
                before=self._text(node),
                after=after,
                is_statement=isinstance(node, ast.stmt),
                is_harmless=_is_harmless(node),
            )
        )

    def _side(self, node: ast.expr) -> str:
        """Its parentheses belong to whoever it stands in."""
        is_one = isinstance(node, ast.Name | ast.Attribute | ast.Constant | ast.Call | ast.Subscript)
        return self._text(node) if is_one else f"({self._text(node)})"

    def _text(self, node: ast.AST) -> str:
        """Of one line; anything else is not noted."""
        assert isinstance(node, ast.expr | ast.stmt)
        return self._lines[node.lineno - 1][node.col_offset : node.end_col_offset].decode()


def _is_number(node: ast.BinOp) -> bool:
    """Not a sum of texts or sequences, as far as can be seen."""
    never = (ast.List, ast.Tuple, ast.JoinedStr, ast.Dict, ast.Set, ast.ListComp, ast.Starred)
    for side in (node.left, node.right):
        if isinstance(side, never) or (isinstance(side, ast.Constant) and not isinstance(side.value, int | float)):
            return False
    return True


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant | ast.Yield)


def _is_harmless(node: ast.AST) -> bool:
    never = (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr, ast.stmt)
    for each in ast.walk(node):
        if isinstance(each, never):
            return False
        if isinstance(each, ast.Call) and not (isinstance(each.func, ast.Name) and each.func.id in HARMLESS):
            return False
    return True
