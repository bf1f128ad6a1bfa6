"""Several brokers to ask: the first that answers counts, or each has its say; who stands still costs one wait.

A process that stands still takes connections and says nothing. So nobody is asked after it who could be asked beside
it: whoever is silent is waited for while the others answer, each in a thread of its own.
"""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TypeVar

from klamm.local.asking import Address, Conversation, NoAnswer, NobodyHere

SOON_SECONDS = 1.0
"""An answer takes milliseconds; whoever takes so long is passed over if there are others."""
AGAIN_SECONDS = 0.3
"""For one that was silent before: it has been waited for, and may be back."""
TIMES_AS_LONG = 10
"""And so many times as long as the others took: on a machine that has too much to do nobody is quick."""

K = TypeVar("K")
T = TypeVar("T")

Question = Callable[[K, Conversation], T]
Answers = SimpleQueue[tuple[K, T | Exception]]


def first_answer(
    addresses: Sequence[Address],
    timeout_seconds: float,
    question: Callable[[Conversation], T],
    on_silence: Callable[[Address], None] | None = None,
) -> tuple[Address, T]:
    """The first of them that answers, and what. One after the other, until one is silent for a moment: then all that
    were not asked yet, and that one again, at the same time, and with all their time."""
    problems: dict[Address, NoAnswer] = {}
    left = list(dict.fromkeys(addresses))
    if len(left) > 1:
        soon_seconds = min(SOON_SECONDS, timeout_seconds)
        for address in tuple(left):
            try:
                with Conversation(address, soon_seconds) as broker:
                    return address, question(broker)
            except NoAnswer as problem:
                problems[address] = problem
                left.remove(address)
                if _is_silence(problem):
                    if on_silence is not None and soon_seconds < timeout_seconds:
                        on_silence(address)
                    left.append(address)
                    break
    answers: Answers[Address, T] = _begun({each: each for each in left}, timeout_seconds, lambda _, it: question(it))
    for _ in left:
        address, answer = answers.get()
        if not isinstance(answer, Exception):
            return address, answer
        problems[address] = _expected(answer)
    words = "; ".join(str(problems[each]) for each in dict.fromkeys(addresses)) or "there is no broker to ask"
    if problems and all(address.is_here and _is_refusal(problem) for address, problem in problems.items()):
        raise NobodyHere(words)
    raise NoAnswer(words)


def each_answer(
    addresses: Mapping[K, Address],
    timeout_seconds: float,
    question: "Question[K, T]",
    moment_seconds: float,
    silent: Collection[Address] = (),
) -> dict[K, T | NoAnswer]:
    """What each of them says, or why not, in their order. Once others have answered, who has not is waited for a moment
    only, and less if it was `silent` before."""
    began = time.monotonic()
    answers: Answers[K, T] = _begun(addresses, timeout_seconds, question)
    found: dict[K, T | NoAnswer] = {}
    until = began + timeout_seconds
    while left := addresses.keys() - found.keys():
        try:
            key, answer = answers.get(timeout=max(0.0, until - time.monotonic()))
        except Empty:
            found |= {key: NoAnswer(f"{addresses[key]}: no answer in time") for key in left}
            break
        found[key] = _expected(answer) if isinstance(answer, Exception) else answer
        if not isinstance(answer, Exception):
            now = time.monotonic()
            left.discard(key)
            moment = AGAIN_SECONDS if all(addresses[each] in silent for each in left) else moment_seconds
            until = min(began + timeout_seconds, now + moment + TIMES_AS_LONG * (now - began))
    return {key: found[key] for key in addresses}


def _begun(addresses: Mapping[K, Address], timeout_seconds: float, question: "Question[K, T]") -> "Answers[K, T]":
    """Each is being asked. A thread that nobody waits for ends with its conversation, or with the program."""
    answers: Answers[K, T] = SimpleQueue()

    def ask(key: K, address: Address) -> None:
        try:
            with Conversation(address, timeout_seconds) as broker:
                answers.put((key, question(key, broker)))
        except Exception as problem:
            answers.put((key, problem))

    for key, address in addresses.items():
        Thread(target=ask, args=(key, address), daemon=True).start()
    return answers


def _expected(problem: Exception) -> NoAnswer:
    if not isinstance(problem, NoAnswer):
        raise problem
    return problem


def _is_silence(problem: NoAnswer) -> bool:
    return isinstance(problem.__cause__, TimeoutError)


def _is_refusal(problem: NoAnswer) -> bool:
    return isinstance(problem.__cause__, ConnectionRefusedError)
