//! Guests of the benchmarks, beside those of the tests.

use crate::guest::Guest;
use crate::guest::imports::with_clock;

/// Answers with its arguments, which a schema with types describes.
pub(crate) fn typed() -> Guest {
    Guest {
        functions: r#"(data (i32.const 3000) "{\22type\22:\22object\22,\22properties\22:{\22path\22:{\22type\22:\22string\22},\22offset\22:{\22type\22:\22number\22},\22limit\22:{\22type\22:\22number\22}},\22required\22:[\22path\22],\22additionalProperties\22:false}")"#,
        list: "(i32.store (i32.const 1024) (i32.const 1040)) (i32.store (i32.const 1028) (i32.const 1))
      (i32.store offset=0 (i32.const 1040) (i32.const 2048)) (i32.store offset=4 (i32.const 1040) (i32.const 3))
      (i32.store offset=20 (i32.const 1040) (i32.const 2051)) (i32.store offset=24 (i32.const 1040) (i32.const 7))
      (i32.store offset=28 (i32.const 1040) (i32.const 3000)) (i32.store offset=32 (i32.const 1040) (i32.const 159))
      (return (i32.const 1024))",
        ..Guest::default()
    }
}

/// Computes for ever.
pub(crate) fn spinning() -> Guest {
    Guest::call("(loop $again (br $again)) unreachable")
}

/// Waits for 100 seconds.
pub(crate) fn sleeping() -> Guest {
    with_clock(Guest::call("(call $block (call $after (i64.const 100000000000))) unreachable"))
}

/// Fills 64 MiB for ever, with one instruction each time. It needs a page more than that.
pub(crate) fn copying() -> Guest {
    Guest::call(
        "(drop (memory.grow (i32.const 1024)))
      (loop $again
        (memory.fill (i32.const 65536) (i32.const 7) (i32.const 67108864))
        (br $again))
      unreachable",
    )
}

/// The interface that [`waiting`] imports.
pub(crate) const GATE: &str = "bench:gate/gate@1.0.0";

/// Waits in a function of the embedder's.
pub(crate) fn waiting() -> Guest {
    Guest {
        imports: r#"(import "bench:gate/gate@1.0.0" (instance $gate
    (export "wait" (func (param "text" string) (result (result string (error string)))))))"#,
        lowered: r#"(core func $wait (canon lower (func $gate "wait") (memory $libc "memory") (realloc (func $libc "realloc"))))
  (core instance $host (export "wait" (func $wait)))"#,
        core_imports: r#"(import "host" "wait" (func $wait (param i32 i32 i32)))"#,
        with: r#"(with "host" (instance $host))"#,
        ..Guest::call(
            "(call $wait (local.get $args) (local.get $args-size) (i32.const 1300))
      (call $answer (i32.load (i32.const 1304)) (i32.load (i32.const 1308)))",
        )
    }
}

/// Something to compute, with a number that says how much of it.
pub(crate) struct Kernel {
    pub(crate) name: &'static str,
    pub(crate) guest: Guest,
    pub(crate) amount: &'static str,
}

/// Four kinds of work: integers in registers, calls, memory, floating point.
pub(crate) fn kernels() -> [Kernel; 4] {
    let kernel = |name, functions, amount| Kernel {
        name,
        guest: Guest {
            functions,
            call: "(call $kernel (call $number (local.get $args) (local.get $args-size)))
      (call $answer (local.get $args) (local.get $args-size))",
            pages: 2,
            ..Guest::default()
        },
        amount,
    };
    [
        kernel("mixing of integers", MIXING, "4000000"),
        kernel("calls", CALLS, "30"),
        kernel("bytes of memory", BYTES, "600"),
        kernel("floating point", FLOATS, "240"),
    ]
}

/// Rounds of xorshift and multiplication on four words.
const MIXING: &str = "(func $kernel (param $n i32)
      (local $a i32) (local $b i32) (local $c i32) (local $d i32)
      (local.set $a (i32.const 0x9e3779b9)) (local.set $b (i32.const 0x7f4a7c15))
      (local.set $c (i32.const 0x2545f491)) (local.set $d (i32.const 0x4f6cdd1d))
      (loop $again
        (local.set $a (i32.add (i32.rotl (local.get $a) (i32.const 7)) (i32.xor (local.get $b) (local.get $c))))
        (local.set $b (i32.mul (i32.xor (local.get $b) (i32.shr_u (local.get $b) (i32.const 15))) (i32.const 0x85ebca6b)))
        (local.set $c (i32.add (i32.rotl (local.get $c) (i32.const 13)) (i32.and (local.get $d) (local.get $a))))
        (local.set $d (i32.xor (i32.rotr (local.get $d) (i32.const 11)) (i32.add (local.get $a) (local.get $b))))
        (local.set $n (i32.sub (local.get $n) (i32.const 1)))
        (br_if $again (local.get $n)))
      (i32.store (i32.const 65536) (i32.xor (i32.xor (local.get $a) (local.get $b)) (i32.xor (local.get $c) (local.get $d)))))";

/// A function that calls itself twice.
const CALLS: &str = "(func $fib (param $n i32) (result i32)
      (if (result i32) (i32.lt_u (local.get $n) (i32.const 2))
        (then (local.get $n))
        (else (i32.add (call $fib (i32.sub (local.get $n) (i32.const 1)))
                       (call $fib (i32.sub (local.get $n) (i32.const 2)))))))
    (func $kernel (param $n i32) (i32.store (i32.const 65536) (call $fib (local.get $n))))";

/// A hash over 48 KiB, so many times.
const BYTES: &str = "(func $kernel (param $n i32)
      (local $h i32) (local $at i32)
      (loop $again
        (local.set $at (i32.const 0))
        (loop $byte
          (local.set $h (i32.mul (i32.xor (local.get $h) (i32.load8_u offset=8192 (local.get $at))) (i32.const 16777619)))
          (local.set $at (i32.add (local.get $at) (i32.const 1)))
          (br_if $byte (i32.lt_u (local.get $at) (i32.const 49152))))
        (local.set $n (i32.sub (local.get $n) (i32.const 1)))
        (br_if $again (local.get $n)))
      (i32.store (i32.const 65536) (local.get $h)))";

/// Points of the Mandelbrot set on a square grid, at most 200 steps each.
const FLOATS: &str = "(func $steps (param $cr f64) (param $ci f64) (result i32)
      (local $zr f64) (local $zi f64) (local $rr f64) (local $ii f64) (local $k i32)
      (block $out (loop $again
        (local.set $rr (f64.mul (local.get $zr) (local.get $zr)))
        (local.set $ii (f64.mul (local.get $zi) (local.get $zi)))
        (br_if $out (f64.gt (f64.add (local.get $rr) (local.get $ii)) (f64.const 4)))
        (local.set $zi (f64.add (f64.mul (f64.const 2) (f64.mul (local.get $zr) (local.get $zi))) (local.get $ci)))
        (local.set $zr (f64.add (f64.sub (local.get $rr) (local.get $ii)) (local.get $cr)))
        (local.set $k (i32.add (local.get $k) (i32.const 1)))
        (br_if $again (i32.lt_u (local.get $k) (i32.const 200)))))
      (local.get $k))
    (func $kernel (param $n i32)
      (local $x i32) (local $y i32) (local $sum i32) (local $scale f64)
      (local.set $scale (f64.div (f64.const 3) (f64.convert_i32_u (local.get $n))))
      (loop $row
        (local.set $x (i32.const 0))
        (loop $column
          (local.set $sum (i32.add (local.get $sum) (call $steps
            (f64.sub (f64.mul (f64.convert_i32_u (local.get $x)) (local.get $scale)) (f64.const 2.2))
            (f64.sub (f64.mul (f64.convert_i32_u (local.get $y)) (local.get $scale)) (f64.const 1.5)))))
          (local.set $x (i32.add (local.get $x) (i32.const 1)))
          (br_if $column (i32.lt_u (local.get $x) (local.get $n))))
        (local.set $y (i32.add (local.get $y) (i32.const 1)))
        (br_if $row (i32.lt_u (local.get $y) (local.get $n))))
      (i32.store (i32.const 65536) (local.get $sum)))";
