;; Knows nothing of the contract, and has a function that computes for ever.
(component
  (core module $module (func (export "f") (loop (br 0))))
  (core instance $m (instantiate $module))
  (func (export "go-on") (canon lift (core func $m "f"))))
