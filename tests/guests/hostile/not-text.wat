;; Is WebAssembly text that does not parse.
(component (core module $m