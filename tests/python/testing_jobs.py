"""Job functions that workers call in the tests: well-behaved ones and every kind of bad one."""

from __future__ import annotations

import ctypes
import os
import signal
import time


def echo(arguments, blob):
    return arguments, blob[::-1]


def process_id(arguments, blob):
    return os.getpid(), b""


def fail(arguments, blob):
    raise ValueError(arguments["text"])


def never_return(arguments, blob):
    while True:
        time.sleep(1)


def hold_the_interpreter(arguments, blob):
    # Like compiled code in an endless loop: no Python signal handler or thread gets a chance.
    ctypes.PyDLL(None).sleep(1000)


def segfault(arguments, blob):
    ctypes.string_at(0)


def exit_process(arguments, blob):
    os._exit(3)


def killed(arguments, blob):
    os.kill(os.getpid(), signal.SIGKILL)


def allocate_without_end(arguments, blob):
    chunks = []
    while True:
        chunks.append(bytearray(64 << 20))


def print_much(arguments, blob):
    for _ in range(1000):
        print("noise on standard output", flush=True)
    os.write(1, b"and past the interpreter\n")
    return "still in step", b""


def report_and_hang(arguments, blob):
    with open(arguments["file"], "w", encoding="ascii") as file:
        file.write("started")
    hold_the_interpreter(arguments, blob)


# What LocalRunner expects of its function.


def run_by_name(arguments, blob):
    behaviour = arguments["behaviour"]
    if behaviour in globals():
        return globals()[behaviour](arguments, blob)
    return {"error_no": 0, "costs": [float(behaviour)]}, b""
