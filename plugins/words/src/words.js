// Counting the words of a text. Nothing here knows that it runs in a plugin.

// Runs of letters and digits, with an apostrophe or hyphen between them. Ranges of code points,
// because the engine of the component carries no tables of Unicode properties.
const PART =
  '[0-9A-Za-z\\u00aa\\u00b5\\u00ba\\u00c0-\\u1fff\\u2c00-\\u2fef\\u3005-\\ud7ff\\uf900-\\ufdff' +
  '\\ufe70-\\ufefe\\uff10-\\uff19\\uff21-\\uff3a\\uff41-\\uff5a\\uff66-\\uffdc' +
  '\\u{10000}-\\u{1efff}\\u{20000}-\\u{3ffff}]+';
const WORD = new RegExp(`${PART}(?:['’-]${PART})*`, 'gu');
const SENTENCE_END = /[.!?…]+(?=["'”’)\]]*(?:\s|$))/g;
const PAIR = /[\ud800-\udbff][\udc00-\udfff]/g;

// Characters between two looks at whether to go on.
const STRIDE = 65_536;

/**
 * Counts a text.
 *
 * @param {string} text
 * @param {number} top how many of the most frequent words to name
 * @param {(done: number, all: number) => boolean} goOn is told how far it is, and says whether to
 *   go on
 */
export function count(text, top, goOn = () => true) {
  const seen = new Map();
  const total = { characters: 0, words: 0, sentences: 0, lines: text === '' ? 0 : 1 };
  let at = 0;
  while (at < text.length) {
    const end = boundary(text, at + STRIDE);
    const part = text.slice(at, end);
    total.characters += part.length - occurrences(part, PAIR);
    total.lines += occurrences(part, /\n/g);
    total.sentences += occurrences(part, SENTENCE_END);
    for (const [word] of part.matchAll(WORD)) {
      total.words += 1;
      const key = word.toLowerCase();
      seen.set(key, (seen.get(key) ?? 0) + 1);
    }
    at = end;
    if (at < text.length && !goOn(at, text.length)) break;
  }
  if (text.endsWith('\n')) total.lines -= 1;
  return {
    ...total,
    different_words: seen.size,
    most_frequent: mostFrequent(seen, top),
    complete: at >= text.length,
  };
}

// Patterns are compiled when they are first used: here, while the component is built, and not in
// every call.
count('Once.', 1);

/** The first white space at or after a position, so that no word is cut in two. */
function boundary(text, from) {
  if (from >= text.length) return text.length;
  const space = /\s/g;
  space.lastIndex = from;
  return space.exec(text)?.index ?? text.length;
}

function occurrences(text, pattern) {
  return text.match(pattern)?.length ?? 0;
}

/** By number, then by the alphabet, so that the same text has the same answer. */
function mostFrequent(seen, top) {
  const order = ([a, m], [b, n]) => n - m || (a < b ? -1 : 1);
  return [...seen].sort(order).slice(0, top).map(([word, times]) => ({ word, times }));
}

/** The counts as people and models read them. */
export function show(counts) {
  const lines = [
    `${counts.words} words, ${counts.different_words} different`,
    `${counts.characters} characters, ${counts.lines} lines, ${counts.sentences} sentences`,
  ];
  if (counts.most_frequent.length > 0) {
    const named = counts.most_frequent.map(({ word, times }) => `${word} ${times}`);
    lines.push(`most frequent: ${named.join(', ')}`);
  }
  return lines.join('\n');
}
