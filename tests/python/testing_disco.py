"""Functions for the workers of a session, which import this module, and what its tests share."""

from __future__ import annotations

import os
import time

import numpy as np

import tvm
from tvm.runtime.disco import disco_worker_id


class Refused(ValueError):
    pass


class Coded(Exception):
    def __init__(self, code, text):
        super().__init__(code, text)


@tvm.register_func("test.disco.tagged", override=True)
def tagged(value):
    return f"{value} in {disco_worker_id()}"


@tvm.register_func("test.disco.numbered", override=True)
def numbered(shape, dtype):
    size = int(np.prod(shape))
    values = (np.arange(size) + 1 + size * disco_worker_id()).reshape(tuple(shape))
    return tvm.nd.array(values.astype(dtype))


@tvm.register_func("test.disco.add_one", override=True)
def add_one(array):
    array.copyfrom(array.numpy() + 1)


@tvm.register_func("test.disco.fail_on", override=True)
def fail_on(worker, kind):
    if disco_worker_id() == worker:
        if kind == "coded":
            raise Coded(7, "two arguments")
        if kind == "exit":
            raise SystemExit(3)
        raise {"key": KeyError, "refused": Refused}[kind]("no 'weights'")


@tvm.register_func("test.disco.leave", override=True)
def leave(worker, status):
    if disco_worker_id() == worker:
        os._exit(status)


@tvm.register_func("test.disco.sleep_on", override=True)
def sleep_on(worker):
    if disco_worker_id() == worker:
        time.sleep(600)


@tvm.register_func("test.disco.pid", override=True)
def pid():
    return os.getpid()


@tvm.register_func("test.disco.reduce_on", override=True)
def reduce_on(worker, source, target):
    if disco_worker_id() == worker:
        tvm.get_global_func("runtime.disco.allreduce")(source, "sum", target)


def values_of(ref):
    return [ref.debug_get_from_remote(worker) for worker in range(ref.session.num_workers)]


def arrays_of(ref):
    return [value.numpy() for value in values_of(ref)]


def numbered_arrays(session, shape, dtype="float32"):
    """Different numbers in each worker, from 1 on."""
    return session.get_global_func("test.disco.numbered")(shape, dtype)
