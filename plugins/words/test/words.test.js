import assert from 'node:assert/strict';
import { test } from 'node:test';
import { count, show } from '../src/words.js';

test('counts what is there', () => {
  const { most_frequent, ...counts } = count("It's a dog. A well-known dog!\nIs it? Yes.\n", 2);
  assert.deepEqual(counts, {
    characters: 42, words: 9, sentences: 4, lines: 2, different_words: 7, complete: true,
  });
  assert.deepEqual(most_frequent, [{ word: 'a', times: 2 }, { word: 'dog', times: 2 }]);
});

test('an empty text has nothing', () => {
  assert.equal(show(count('', 10)), '0 words, 0 different\n0 characters, 0 lines, 0 sentences');
});

test('words of other scripts and characters beyond the first plane', () => {
  const counts = count('Élan vital, привет мир — 𝒳𝒴 😀', 0);
  assert.equal(counts.words, 5);
  assert.equal(counts.characters, 29);
});

test('a long text is counted in parts without cutting a word', () => {
  const all = count('wörter '.repeat(50_000), 1);
  assert.deepEqual(all.most_frequent, [{ word: 'wörter', times: 50_000 }]);
  assert.equal(all.complete, true);
});

test('stops when told to, and says how far it came', () => {
  const told = [];
  const part = count('word '.repeat(50_000), 1, (done, all) => {
    told.push([done, all]);
    return told.length < 2;
  });
  assert.equal(part.complete, false);
  assert.equal(told.length, 2);
  assert.ok(part.words > 26_000 && part.words < 50_000, `${part.words}`);
});
