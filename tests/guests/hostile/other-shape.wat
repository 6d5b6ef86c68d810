;; Exports the functions of tools with another shape.
(component
  (core module $m (func (export "f") (result i32) (i32.const 0)))
  (core instance $m (instantiate $m))
  (func $f (result u32) (canon lift (core func $m "f")))
  (instance $tools (export "list-tools" (func $f)) (export "call-tool" (func $f)))
  (export "cofferdam:plugin/tools@0.1.0" (instance $tools)))