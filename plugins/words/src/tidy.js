// Tidying text that was made for a terminal: what costs a model tokens and tells it nothing.

// Colours and cursor movements, window titles, and the rest of the two-character kind.
const ESCAPES = /\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])/g;

/**
 * Removes terminal escapes, lines that a carriage return overwrote, spaces at the end of lines, and
 * blank lines beyond `blankLines` in a row.
 */
export function tidy(text, blankLines) {
  let blank = 0;
  const lines = [];
  for (const raw of text.replace(ESCAPES, '').split(/\r?\n/)) {
    const line = raw.slice(raw.lastIndexOf('\r') + 1).trimEnd();
    blank = line === '' ? blank + 1 : 0;
    if (blank <= blankLines) lines.push(line);
  }
  return lines.join('\n');
}

// Compiles the pattern while the component is built, and not in every call.
tidy('', 0);
