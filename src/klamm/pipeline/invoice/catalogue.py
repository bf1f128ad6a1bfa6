"""What the shops sell, and the lines of an invoice written in advance: every product in every quantity.

Money is counted in cents and written as JSON numbers with two decimals, which Spark reads into `decimal` digit by
digit. Nothing here is ever a float.
"""

from random import Random

STORES = tuple(f"S{number:03d}" for number in range(64))
CUSTOMERS = tuple(f"C{number:05d}" for number in range(1 << 14))

WHAT = ("Äpfel", "Bananen", "Brot", "Brötchen", "Butter", "Eier", "Honig", "Kaffee", "Käse", "Milch", "Nudeln", "Öl",
        "Reis", "Salz", "Tee", "Zucker")  # fmt: skip
FROM = ("Alm", "Berg", "Dorf", "Feld", "Fluss", "Hof", "Insel", "Klamm", "Moor", "Mühle", "See", "Stadt", "Tal", "Ufer",
        "Wald", "Wiese")  # fmt: skip
SIZES = ("klein", "groß")
QUANTITIES = (1, 1, 1, 1, 2, 2, 3, 12)


def money(cents: int) -> str:
    return f"{cents // 100}.{cents % 100:02d}"


def _lines() -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Every line that an invoice may have, as JSON, and beside it what it costs in cents."""
    prices = Random("what things cost")
    written, amounts = [], []
    for product in (f"{what} {origin} {size}" for what in WHAT for origin in FROM for size in SIZES):
        price = prices.randrange(29, 2_000)
        for quantity in QUANTITIES:
            written.append(
                f'{{"product":"{product}","quantity":{quantity},'
                f'"unit_price":{money(price)},"amount":{money(quantity * price)}}}'
            )
            amounts.append(quantity * price)
    return tuple(written), tuple(amounts)


LINES, AMOUNTS = _lines()
assert len(LINES) == 1 << 12, "a draw of twelve bits is a line"
