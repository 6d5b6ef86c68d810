;; Exports a function under the name of an interface.
(component
  (core module $m (func (export "f")))
  (core instance $m (instantiate $m))
  (func $f (canon lift (core func $m "f")))
  (export "tools" (func $f)))