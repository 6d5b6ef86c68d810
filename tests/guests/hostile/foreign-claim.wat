;; Knows nothing of the contract, and claims to return four billion numbers.
(component
  (core module $module (memory (export "memory") 1)
    (func (export "f") (result i32) (i32.store (i32.const 16) (i32.const -1)) (i32.const 12)))
  (core instance $m (instantiate $module))
  (func (export "numbers") (result (list u64)) (canon lift (core func $m "f") (memory (core memory $m "memory")))))
