"""Pictures as plain SVG text: boxes, words, arrows. Readable on light and on dark paper, small, and easy to compare.

Colours are named after what they stand for; a viewer that prefers dark gets the dark set.
"""

from html import escape
from pathlib import Path

STYLE = """\
.paper{fill:#ffffff}.t{fill:#1f2328;font:13px ui-sans-serif,system-ui,sans-serif}.b{font-weight:600}.s{font-size:11px}
.m{text-anchor:middle}.e{text-anchor:end}.q{fill:#656d76}.line{stroke:#656d76;fill:none;stroke-width:1.3}
.dash{stroke-dasharray:4 3}.box{fill:#f6f8fa;stroke:#afb8c1}.rack{fill:none;stroke:#afb8c1;stroke-dasharray:5 4}
.leader{fill:#1a7f37;stroke:#1a7f37}.first{fill:#aceebb;stroke:#4ac26b}.second{fill:#dafbe1;stroke:#4ac26b}
.done{fill:#b6e3ff;stroke:#54aeff}.open{fill:#fff8c5;stroke:#d4a72c}.bad{fill:#ffcecb;stroke:#ff8182}
.on{fill:#ffffff}.ink{fill:#1f2328}
@media(prefers-color-scheme:dark){.paper{fill:#0d1117}.t{fill:#e6edf3}.q{fill:#8d96a0}.line{stroke:#8d96a0}
.box{fill:#161b22;stroke:#3d444d}.rack{stroke:#3d444d}.ink{fill:#1f2328}}"""
ARROW = (
    '<marker id="a" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    '<path d="M0 0 8 4 0 8z" fill="#656d76"/></marker>'
)


class Drawing:
    def __init__(self, width: int, height: int, title: str) -> None:
        self._width, self._height, self._title = width, height, title
        self._parts: list[str] = []

    def box(self, x: float, y: float, width: float, height: float, kind: str = "box", corner: int = 4) -> None:
        self._parts.append(
            f'<rect class="{kind}" x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(height)}" rx="{corner}"/>'
        )

    def text(self, x: float, y: float, words: str, kind: str = "") -> None:
        classes = f"t {kind}".strip()
        self._parts.append(f'<text class="{classes}" x="{_n(x)}" y="{_n(y)}">{escape(words)}</text>')

    def cell(self, x: float, y: float, width: float, height: float, words: str, kind: str) -> None:
        """A box with a word in its middle; the ink stays dark on the colours that stay light."""
        self.box(x, y, width, height, kind, corner=3)
        ink = "on" if kind == "leader" else "" if kind == "box" else "ink"
        self.text(x + width / 2, y + height / 2 + 4.5, words, f"m s {ink}".strip())

    def line(self, x: float, y: float, to_x: float, to_y: float, arrow: bool = True, kind: str = "") -> None:
        end = ' marker-end="url(#a)"' if arrow else ""
        classes = f"line {kind}".strip()
        self._parts.append(f'<path class="{classes}" d="M{_n(x)} {_n(y)} {_n(to_x)} {_n(to_y)}"{end}/>')

    def written(self, path: Path) -> None:
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self._width} {self._height}"'
            f' width="{self._width}" height="{self._height}" role="img">'
        )
        paper = f'<rect class="paper" width="{self._width}" height="{self._height}" rx="6"/>'
        lines = [
            head,
            f"<title>{escape(self._title)}</title>",
            f"<style>{STYLE}</style>",
            f"<defs>{ARROW}</defs>",
            paper,
        ]
        path.write_text("\n".join([*lines, *self._parts, "</svg>"]) + "\n", encoding="utf-8")


def _n(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")
