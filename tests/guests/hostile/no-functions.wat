;; Exports the interface of tools without its functions.
(component (component $c) (instance $i (instantiate $c)) (export "cofferdam:plugin/tools@0.1.0" (instance $i)))