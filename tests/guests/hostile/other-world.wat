;; Is a component of another world.
(component (component $c) (instance $i (instantiate $c)) (export "wasi:cli/run@0.2.0" (instance $i)))