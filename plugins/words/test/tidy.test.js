import assert from 'node:assert/strict';
import { test } from 'node:test';
import { tidy } from '../src/tidy.js';

const cases = [
  ['colours', '\x1b[1;31merror\x1b[0m: no', 'error: no'],
  ['titles', '\x1b]0;make\x07done\x1b]8;;http://x\x1b\\', 'done'],
  ['a progress bar', '10 %\r50 %\r100 %\nend', '100 %\nend'],
  ['line ends', 'a\r\nb  \t\r\n', 'a\nb\n'],
  ['blank lines', 'a\n\n\n \nb', 'a\n\nb'],
  ['plain text', 'fn main() {\n    x[0-9]\n}\n', 'fn main() {\n    x[0-9]\n}\n'],
];

for (const [name, text, tidied] of cases) {
  test(name, () => assert.equal(tidy(text, 1), tidied));
}

test('no blank line at all', () => assert.equal(tidy('a\n\nb\n', 0), 'a\nb'));
