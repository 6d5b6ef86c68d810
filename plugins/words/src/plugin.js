// Where the plugin meets its contract: the interfaces in ../../wit, as JavaScript has them. Texts,
// numbers and lists are what they are; a variant is `{ tag, val }`; an option that is left out is
// `undefined`; an error is thrown.
import { isCancelled } from 'cofferdam:plugin/cancellation@0.1.0';
import { read } from 'cofferdam:plugin/config@0.1.0';
import { write as log } from 'cofferdam:plugin/log@0.1.0';
import { report } from 'cofferdam:plugin/progress@0.1.0';
import { tidy } from './tidy.js';
import { count, show } from './words.js';

const text = (val) => ({ tag: 'text', val });

const TOP_MAX = 100;

const COUNT_WORDS = {
  name: 'count_words',
  label: 'Count words',
  description:
    'Counts words, characters, lines and sentences of a text and names its most frequent words. ' +
    'Use it instead of counting yourself.',
  parameters: JSON.stringify({
    type: 'object',
    properties: {
      text: { type: 'string', description: 'the text' },
      top: {
        type: 'integer',
        minimum: 0,
        maximum: TOP_MAX,
        default: 10,
        description: 'how many of the most frequent words to name',
      },
    },
    required: ['text'],
    additionalProperties: false,
  }),
  execution: { tag: 'parallel' },
  meta: [['read-only', 'true'], ['idempotent', 'true']],
};

function countWords(args) {
  const counts = count(args.text, args.top ?? 10, (done, all) => {
    report([text(`counted ${done} of ${all} characters`)], undefined);
    return !isCancelled();
  });
  const { complete, ...details } = counts;
  return {
    content: [text(complete ? show(counts) : `Cancelled. So far: ${show(counts)}`)],
    details: JSON.stringify(details),
    isError: !complete,
    terminate: undefined,
    meta: [],
  };
}

export const tools = {
  listTools: () => [COUNT_WORDS],

  callTool(call) {
    if (call.name === COUNT_WORDS.name) return countWords(JSON.parse(call.arguments));
    throw { kind: 'rejected', code: 'no-such-tool', message: `there is no tool ${call.name}` };
  },
};

export const afterToolCall = {
  after(call, outcome) {
    const blankLines = setting('blank_lines', 1);
    let saved = 0;
    const content = outcome.value.content.map((block) => {
      if (block.tag !== 'text') return block;
      const tidied = tidy(block.val, blankLines);
      saved += block.val.length - tidied.length;
      return text(tidied);
    });
    if (saved === 0) return {};
    log('debug', `tidied ${saved} characters out of the result of ${call.name}`);
    return { content };
  },
};

/** A whole number that the operator may have set. */
function setting(key, otherwise) {
  const set = read(key);
  if (set === undefined) return otherwise;
  if (!/^\d{1,6}$/.test(set)) throw `grants.config.${key} is a whole number, not ${set}`;
  return Number(set);
}
