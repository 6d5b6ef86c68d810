;; Is a core module.
(module (memory 1))