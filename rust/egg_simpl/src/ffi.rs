//! The C interface declared in include/tvm/arith/egg_simpl.h.
//!
//! Each function reports a status and a message. Panics end here and become internal errors.

use crate::saturate::Limits;
use crate::simplify::simplify_tape;
use crate::tape::{Tape, Variable};
use crate::text;
use std::ffi::{c_char, CStr, CString};
use std::panic::{catch_unwind, AssertUnwindSafe};

const OK: i32 = 0;
const INVALID_INPUT: i32 = 1;
const INTERNAL_ERROR: i32 = 2;
const NO_MEMORY: i32 = 3;

#[repr(C)]
pub struct EggVariable {
    lower: f64,
    upper: f64,
    is_integer: u8,
}

#[repr(C)]
pub struct EggTape {
    size: i64,
    ops: *const u8,
    args: *const i32,
    payload: *const i64,
    num_roots: i64,
    roots: *const i32,
}

#[repr(C)]
pub struct EggOptions {
    iterations: i32,
    node_limit: i32,
    at_least_one: u8,
}

#[repr(C)]
pub struct EggReport {
    stop_reason: i32,
    nodes: i64,
}

fn limits(iterations: i32, node_limit: i32, at_least_one: u8) -> Result<Limits, String> {
    let count = |name: &str, value: i32| {
        usize::try_from(value).map_err(|_| format!("{name} must be >= 0, got {value}"))
    };
    Ok(Limits {
        iterations: count("iterations", iterations)?,
        nodes: count("node_limit", node_limit)?,
        at_least_one: at_least_one != 0,
    })
}

/// # Safety
/// `data` points to `length` readable values, or `length` is 0.
unsafe fn slice<'a, T>(name: &str, data: *const T, length: i64) -> Result<&'a [T], String> {
    let length =
        usize::try_from(length).map_err(|_| format!("{name}: length {length} is negative"))?;
    if length == 0 {
        return Ok(&[]);
    }
    if data.is_null() {
        return Err(format!("{name} is null but should hold {length} values"));
    }
    Ok(std::slice::from_raw_parts(data, length))
}

/// # Safety
/// `text` is null or a terminated string.
unsafe fn read_text<'a>(name: &str, text: *const c_char) -> Result<&'a str, String> {
    if text.is_null() {
        return Err(format!("{name} is null"));
    }
    CStr::from_ptr(text).to_str().map_err(|_| format!("{name} is not valid UTF-8"))
}

fn hand_out(text: &str) -> *mut c_char {
    let clean: String = text.chars().filter(|c| *c != '\0').collect();
    CString::new(clean).map_or(std::ptr::null_mut(), CString::into_raw)
}

/// An allocation that fails later ends the process, so it is tried beforehand whether there is room
/// for `entries` of input and an e-graph of `nodes`.
fn room(entries: i64, nodes: i32) -> Result<(), (i32, String)> {
    const ALWAYS: usize = 16 << 20;
    const PER_ENTRY: usize = 2 << 10;
    const PER_NODE: usize = 512;
    let count = |value: i64| usize::try_from(value).unwrap_or(0);
    let bytes = count(entries)
        .saturating_mul(PER_ENTRY)
        .saturating_add(count(i64::from(nodes)).saturating_mul(PER_NODE))
        .saturating_add(ALWAYS);
    let mut trial: Vec<u8> = Vec::new();
    let outcome = trial.try_reserve_exact(bytes);
    std::hint::black_box(&trial);
    outcome.map_err(|_| (NO_MEMORY, format!("no room for {} MiB of an e-graph", bytes >> 20)))
}

/// Run `body`; its error, or the text of its panic, comes back with the status.
fn guarded<T>(
    room: Result<(), (i32, String)>,
    body: impl FnOnce() -> Result<T, String>,
) -> Result<T, (i32, String)> {
    room?;
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(result) => result.map_err(|message| (INVALID_INPUT, message)),
        Err(panic) => {
            let text = panic
                .downcast_ref::<String>()
                .cloned()
                .or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string))
                .unwrap_or_else(|| "panic without a text".to_string());
            Err((INTERNAL_ERROR, text))
        }
    }
}

/// # Safety
/// `target` is null or writable.
unsafe fn put<T>(target: *mut T, value: T) {
    if !target.is_null() {
        target.write(value);
    }
}

/// # Safety
/// As the header says: arrays have the stated lengths, out parameters are writable or null.
#[no_mangle]
pub unsafe extern "C" fn egg_simplify_tape(
    tape: *const EggTape,
    variables: *const EggVariable,
    num_variables: i64,
    options: *const EggOptions,
    result: *mut EggTape,
    report: *mut EggReport,
    message: *mut *mut c_char,
) -> i32 {
    put(message, std::ptr::null_mut());
    put(result, EMPTY_TAPE);
    let (entries, nodes) = match (tape.as_ref(), options.as_ref()) {
        (Some(tape), Some(options)) => (tape.size, options.node_limit),
        _ => (0, 0),
    };
    let outcome = guarded(room(entries, nodes), || {
        if tape.is_null() || options.is_null() || result.is_null() {
            return Err("tape, options and result must not be null".to_string());
        }
        let (tape, options) = (&*tape, &*options);
        let variables: Vec<Variable> = slice("variables", variables, num_variables)?
            .iter()
            .map(|variable| Variable {
                lower: variable.lower,
                upper: variable.upper,
                is_integer: variable.is_integer != 0,
            })
            .collect();
        let tape = Tape::from_arrays(
            slice("ops", tape.ops, tape.size)?,
            slice("args", tape.args, tape.size.saturating_mul(3))?,
            slice("payload", tape.payload, tape.size)?,
            slice("roots", tape.roots, tape.num_roots)?,
            variables.len(),
        )?;
        let limits = limits(options.iterations, options.node_limit, options.at_least_one)?;
        simplify_tape(&tape, &variables, limits)
    });
    match outcome {
        Ok((tape, found)) => {
            put(result, export(tape));
            put(report, EggReport { stop_reason: found.reason as i32, nodes: found.nodes as i64 });
            OK
        }
        Err((status, text)) => {
            put(message, hand_out(&text));
            status
        }
    }
}

const EMPTY_TAPE: EggTape = EggTape {
    size: 0,
    ops: std::ptr::null(),
    args: std::ptr::null(),
    payload: std::ptr::null(),
    num_roots: 0,
    roots: std::ptr::null(),
};

fn leak<T>(values: Vec<T>) -> *const T {
    Box::into_raw(values.into_boxed_slice()) as *const T
}

/// # Safety
/// `data` came from `leak` of a vector of `length` values, or is null.
unsafe fn reclaim<T>(data: *const T, length: i64) {
    if !data.is_null() {
        let values = std::ptr::slice_from_raw_parts_mut(data.cast_mut(), length as usize);
        drop(Box::from_raw(values));
    }
}

fn export(tape: Tape) -> EggTape {
    EggTape {
        size: tape.entries.len() as i64,
        ops: leak(tape.entries.iter().map(|entry| entry.op as u8).collect()),
        args: leak(tape.entries.iter().flat_map(|entry| entry.args).collect()),
        payload: leak(tape.entries.iter().map(|entry| entry.payload).collect()),
        num_roots: tape.roots.len() as i64,
        roots: leak(tape.roots),
    }
}

/// # Safety
/// `tape` is null or was filled by `egg_simplify_tape` and not released yet.
#[no_mangle]
pub unsafe extern "C" fn egg_free_tape(tape: *mut EggTape) {
    if tape.is_null() {
        return;
    }
    let owned = tape.replace(EMPTY_TAPE);
    reclaim(owned.ops, owned.size);
    reclaim(owned.args, owned.size * 3);
    reclaim(owned.payload, owned.size);
    reclaim(owned.roots, owned.num_roots);
}

/// # Safety
/// `text` is a terminated string; `result` is writable.
#[no_mangle]
pub unsafe extern "C" fn simplify_expr(
    text: *const c_char,
    iterations: i32,
    node_limit: i32,
    at_least_one: u8,
    result: *mut *mut c_char,
) -> i32 {
    let outcome = guarded(room(0, node_limit), || {
        let limits = limits(iterations, node_limit, at_least_one)?;
        text::simplify_expr(read_text("text", text)?, limits)
    });
    let (status, text) = match outcome {
        Ok(text) => (OK, text),
        Err((status, text)) => (status, text),
    };
    put(result, hand_out(&text));
    status
}

/// # Safety
/// `left` and `right` are terminated strings; `equal` and `message` are writable or null.
#[no_mangle]
pub unsafe extern "C" fn is_equivalent(
    left: *const c_char,
    right: *const c_char,
    iterations: i32,
    node_limit: i32,
    at_least_one: u8,
    equal: *mut u8,
    message: *mut *mut c_char,
) -> i32 {
    put(message, std::ptr::null_mut());
    put(equal, 0);
    let outcome = guarded(room(0, node_limit), || {
        let limits = limits(iterations, node_limit, at_least_one)?;
        text::is_equivalent(read_text("left", left)?, read_text("right", right)?, limits)
    });
    match outcome {
        Ok(answer) => {
            put(equal, u8::from(answer));
            OK
        }
        Err((status, text)) => {
            put(message, hand_out(&text));
            status
        }
    }
}

/// # Safety
/// `text` is null or was handed out by this library and not released yet.
#[no_mangle]
pub unsafe extern "C" fn free_str(text: *mut c_char) {
    if !text.is_null() {
        drop(CString::from_raw(text));
    }
}
