//! What simplification does to small expressions, in the prefix text language.

use egg_simpl::{is_equivalent, simplify_expr, Limits};

const LIMITS: Limits = Limits { iterations: 12, nodes: 3000, at_least_one: true };

fn simplify(text: &str) -> String {
    simplify_expr(text, LIMITS).unwrap()
}

fn equivalent(left: &str, right: &str) -> bool {
    is_equivalent(left, right, LIMITS).unwrap()
}

#[test]
fn expressions_reach_their_short_form() {
    for (long, short) in [
        // Polynomials
        ("(+ (+ (* (- a:k 1) b:k) (- b:k 1)) 1)", "(* a:k b:k)"),
        ("(- (+ x:s 3) (+ 3 x:s))", "0"),
        ("(/ (* 6 (* x:s y:s)) (* 3 y:s))", "(* 2 x:s)"),
        ("(+ (* 0.1 x:s) (* -0.1 x:s))", "0"),
        // Powers, exponentials, logarithms
        ("(* (pow 2 sp_0_0_2:k) (pow 2 sp_0_1_2:k))", "(pow 2 (+ sp_0_0_2:k sp_0_1_2:k))"),
        ("(log (pow 2 sp_0_0_2:k))", "(* 0.6931471805599453 sp_0_0_2:k)"),
        ("(exp (log x:s))", "x:s"),
        ("(exp (- (log x:s) (log y:s)))", "(/ x:s y:s)"),
        ("(- (log (* x:s y:s)) (log y:s))", "(log x:s)"),
        ("(sqrt (* x:s x:s))", "x:s"),
        ("(logk 2 8)", "3"),
        // Floor division
        ("(// (* q:v (* a:k b:k)) a:k)", "(* q:v b:k)"),
        ("(// (+ (* x:s 4) 3) 4)", "x:s"),
        ("(mod (+ (* x:s y:k) 0) y:k)", "0"),
        ("(// (// x:s 4) 8)", "(// x:s 32)"),
        ("(+ (* (// x:s y:k) y:k) (mod x:s y:k))", "x:s"),
        // Minimum, maximum, selection
        ("(min x:s x:s)", "x:s"),
        ("(max 0 x:s)", "x:s"),
        ("(min (* 2 x:s) x:s)", "x:s"),
        ("(max a (min a b))", "a"),
        ("(select (< 0 x:s) a b)", "a"),
        ("(select c:b a a)", "a"),
        ("(select (< a b) a b)", "(min a b)"),
        ("(+ (min a b) (max a b))", "(+ a b)"),
        // Comparisons and booleans
        ("(< x:s x:s)", "0"),
        ("(>= x:s 1)", "1"),
        ("(&& c:b (|| c:b d:b))", "c:b"),
        ("(! (! c:b))", "c:b"),
        ("(|| c:b (! c:b))", "1"),
        ("(== (+ x:s 1) x:s)", "0"),
        ("(< (* 4 a) (* 4 b))", "(< a b)"),
    ] {
        assert_eq!(simplify(long), short, "{long}");
    }
}

#[test]
fn short_forms_stay_as_they_are() {
    for text in
        ["x:s", "(* x:s (+ a b))", "(/ a b)", "(min a b)", "(// a b)", "(log a)", "(pow a b)"]
    {
        assert_eq!(simplify(text), text);
    }
}

#[test]
fn cancellation_waits_for_a_proof() {
    // b may be zero, a may be negative.
    assert_eq!(simplify("(/ (* a b) b)"), "(/ (* a b) b)");
    assert_eq!(simplify("(log (* a b))"), "(log (* a b))");
    assert_eq!(simplify("(sqrt (* a a))"), "(sqrt (* a a))");
}

#[test]
fn equal_expressions_are_recognised() {
    for (left, right) in [
        ("(* (+ a b) (+ a b))", "(+ (+ (* a a) (* 2 (* a b))) (* b b))"),
        ("(/ (+ a b) x:s)", "(+ (/ a x:s) (/ b x:s))"),
        ("(// (+ (* a 12) (* 4 b)) 4)", "(+ (* 3 a) b)"),
        ("(< 1 (* x:s y:s))", "(|| (< 1 x:s) (< 1 y:s))"),
        ("(min a (min b c))", "(min (min c a) b)"),
        ("(- (max a b) (min a b))", "(+ (max b a) (* -1 (min b a)))"),
        ("(pow (pow x:s a) b)", "(pow x:s (* a b))"),
    ] {
        assert!(equivalent(left, right), "{left} and {right}");
    }
    assert!(!equivalent("(+ a b)", "(* a b)"));
    assert!(!equivalent("(// a b)", "(/ a b)"));
}

#[test]
fn overflowing_constants_are_left_in_place() {
    let big = i64::MAX;
    let text = format!("(+ (* {big} x:s) (* {big} x:s))");
    assert!(simplify(&text).contains(&big.to_string()));
}

#[test]
fn malformed_text_is_refused_with_its_reason() {
    for (text, reason) in [
        ("", "empty"),
        ("(+ 1", "`(+` is never closed"),
        ("(+ 1 2))", "follows a complete expression"),
        (")", "`)` without `(`"),
        ("(foo 1 2)", "`foo` is not an operator"),
        ("(+ 1)", "`+` takes 2 operands, got 1"),
        ("x:q", "neither a number nor a name"),
    ] {
        let error = simplify_expr(text, LIMITS).unwrap_err();
        assert!(error.contains(reason), "{text}: {error}");
    }
}
