;; Is a component without exports.
(component)