;; Knows nothing of the contract, and has a parameter of a quarter of a million numbers.
(component
  (core module $module (memory (export "memory") 1)
    (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 0))
    (func (export "f") (param i32)))
  (core instance $m (instantiate $module))
  (type $n0 (tuple u8 u8)) (type $n1 (tuple $n0 $n0)) (type $n2 (tuple $n1 $n1)) (type $n3 (tuple $n2 $n2)) (type $n4 (tuple $n3 $n3)) (type $n5 (tuple $n4 $n4)) (type $n6 (tuple $n5 $n5)) (type $n7 (tuple $n6 $n6)) (type $n8 (tuple $n7 $n7)) (type $n9 (tuple $n8 $n8)) (type $n10 (tuple $n9 $n9)) (type $n11 (tuple $n10 $n10)) (type $n12 (tuple $n11 $n11)) (type $n13 (tuple $n12 $n12)) (type $n14 (tuple $n13 $n13)) (type $n15 (tuple $n14 $n14)) (type $n16 (tuple $n15 $n15)) (type $n17 (tuple $n16 $n16)) (func (export "wide") (param "all" $n17)
    (canon lift (core func $m "f") (memory (core memory $m "memory")) (realloc (core func $m "realloc")))))
