;; Knows nothing of the contract, and returns a million bytes, each of which the host would make a number.
(component
  (core module $module (memory (export "memory") 20)
    (func (export "f") (result i32) (i32.store (i32.const 16) (i32.const 1000000)) (i32.const 12)))
  (core instance $m (instantiate $module))
  (func (export "bytes") (result (list u8)) (canon lift (core func $m "f") (memory (core memory $m "memory")))))
