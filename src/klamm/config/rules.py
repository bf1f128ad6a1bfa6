"""What a setting allows beyond its kind, written in the tables as one short word.

    .                     anything of the kind
    >=1   1..9            a number in that range, both ends included
    gzip-level            1..9, or -1 for the codec's own choice
    one:a,b   anycase:A,B one of these words; `anycase` does not mind capitals
    each:a,b              a list of these words; may be empty, and what is doubled counts once
    some:a,b              a list of these words; at least one, none doubled
    list?   list+         a list of anything, none doubled and none blank; `list+` has at least one
    nonempty              a string with something in it
    place                 an address, `host:port`, or nothing
    voters   servers      addresses, `id@host:port` or `host:port`
    replicas              `*`, or `partition:broker` pairs

A broken rule raises `BadValueError` in the words of Kafka's tools; `allowed` says the same to whoever writes a file.
"""

from collections.abc import Callable

from klamm.config.kinds import BadListError, BadValueError, Kind, Value, written


def check(name: str, rule: str, value: Value) -> Value:
    """The value, or what it stands for when the rule forgives something; `BadValueError` when the rule is broken."""
    if rule == "." or value is None:
        return value
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return _in_range(name, rule, value)
    if isinstance(value, str):
        return _word(name, rule, value)
    return _list(name, rule, value)


def allowed(kind: Kind, rule: str) -> str:
    """What may stand there, for a person."""
    word, _, words = rule.partition(":")
    spelled = words.replace(",", ", ")
    if word in _IN_WORDS:
        return _IN_WORDS[word].format(spelled)
    if ".." in rule:
        low, _, high = rule.partition("..")
        return f"{_KINDS_IN_WORDS[kind]} from {low} to {high}"
    if rule.startswith(">="):
        return f"{_KINDS_IN_WORDS[kind]} of at least {rule[2:]}"
    return _KINDS_IN_WORDS[kind]


def address(text: str) -> tuple[str, int] | None:
    """`host:port`, with brackets around a host that itself has colons; nothing when it is not one."""
    host, _, port = text.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        return None
    if not (port.isascii() and port.isdigit() and int(port) <= 65535) or not _is_host(host):
        return None
    return host, int(port)


def voter(text: str) -> tuple[int, str, int] | None:
    """`id@host:port`; nothing when it is not one."""
    number, _, place = text.partition("@")
    found = address(place)
    if found is None or not found[0] or not (number.isascii() and number.isdigit()):
        return None
    return int(number), *found


_KINDS_IN_WORDS = {
    Kind.BOOLEAN: "true or false",
    Kind.STRING: "a string",
    Kind.INT: "a whole number (32 bits)",
    Kind.SHORT: "a whole number (16 bits)",
    Kind.LONG: "a whole number (64 bits)",
    Kind.DOUBLE: "a number",
    Kind.LIST: "a list, separated by commas",
    Kind.CLASS: "a class name",
    Kind.PASSWORD: "a secret",
    Kind.UNKNOWN: "a string",
}

_IN_WORDS = {
    "one": "one of {0}",
    "anycase": "one of {0}",
    "each": "a list of {0}",
    "some": "a list of {0}, at least one, each once",
    "list?": "a list, separated by commas, each entry once",
    "list+": "a list, separated by commas, at least one entry, each once",
    "nonempty": "a string that is not empty",
    "place": "host:port, or nothing",
    "voters": "a list of id@host:port",
    "servers": "a list of host:port",
    "replicas": "* or a list of partition:broker",
    "gzip-level": "a whole number from 1 to 9, or -1",
}


def _in_range(name: str, rule: str, number: int | float) -> Value:
    if rule == "gzip-level":
        if number != -1 and not 1 <= number <= 9:
            raise BadValueError(name, number, "Value must be between 1 and 9 or equal to -1")
        return number
    low, _, high = rule.removeprefix(">=").partition("..")
    if number < float(low):
        raise BadValueError(name, written(number), f"Value must be at least {low}")
    if high and number > float(high):
        raise BadValueError(name, written(number), f"Value must be no more than {high}")
    return number


def _word(name: str, rule: str, value: str) -> Value:
    kind, _, words = rule.partition(":")
    if kind == "nonempty" and not value:
        raise BadValueError(name, value, "String must be non-empty")
    if kind == "place" and value and not (address(value) or ("",))[0]:
        raise BadValueError(name, value, "It should be in the form `{host}:{port}`.")
    if kind == "one" and value not in words.split(","):
        raise BadValueError(name, value, f"String must be one of: {words.replace(',', ', ')}")
    if kind == "anycase" and value.upper() not in words.split(","):
        raise BadValueError(name, value, f"String must be one of (case insensitive): {words.replace(',', ', ')}")
    return value


def _list(name: str, rule: str, values: tuple[str, ...]) -> Value:
    kind, _, words = rule.partition(":")
    if kind in _ENTRY_RULES:
        return _ENTRY_RULES[kind](name, values)
    if not values and kind in ("some", "list+"):
        includes = f"[{words.replace(',', ', ')}]" if words else "any non-empty value"
        raise BadListError(name, f"must not be empty. Valid values include: {includes}")
    once = tuple(dict.fromkeys(values))
    if once != values and kind != "each":
        raise BadListError(name, "values must not be duplicated.")
    for value in once:
        if not value:
            raise BadListError(name, "values must not be empty.")
        if words and value not in words.split(","):
            raise BadValueError(name, value, f"String must be one of: {words.replace(',', ', ')}")
    return once


def _voters(name: str, values: tuple[str, ...]) -> Value:
    for value in values:
        if voter(value) is None:
            raise BadValueError(name, value, "Each entry should be in the form `{id}@{host}:{port}`.")
    return values


def _servers(name: str, values: tuple[str, ...]) -> Value:
    for value in values:
        found = address(value)
        if found is None or not found[0]:
            raise BadValueError(name, value, 'Each entry should be in the form "{host}:{port}".')
    return values


def _replicas(name: str, values: tuple[str, ...]) -> Value:
    # Kafka drops an empty last entry, because its tools leave a comma behind.
    pairs = [value.partition(":") for value in (values[:-1] if values[-1:] == ("",) else values)]
    if values == ("*",) or all(left.isdigit() and right.isdigit() for left, _, right in pairs):
        return values
    shape = "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
    reason = f"{name} must be the literal '*' or a list of replicas in the following format: {shape}"
    raise BadValueError(name, f"[{', '.join(values)}]", reason)


_ENTRY_RULES: dict[str, Callable[[str, tuple[str, ...]], Value]] = {
    "voters": _voters,
    "servers": _servers,
    "replicas": _replicas,
}


def _is_host(host: str) -> bool:
    return all(letter.isascii() and (letter.isalnum() or letter in "-%._:") for letter in host)
