// What the loop of the reference implementation costs, for the ratios that `agent_loop` is held to.
// In this folder: `npm install && npm run bench`. It needs Node 22.19 or newer, which the package
// `node` brings.
import { performance } from 'node:perf_hooks';
import { Agent, runAgentLoop } from '@earendil-works/pi-agent-core';
import { createAssistantMessageEventStream } from '@earendil-works/pi-ai';

const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 };
const usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 0, cost };
const model = {
  id: 'scripted', name: 'scripted', api: 'scripted', provider: 'scripted', baseUrl: '', reasoning: false,
  input: ['text'], cost, contextWindow: 1e6, maxTokens: 1e5,
};
const tool = {
  name: 'read', label: 'read', description: 'The tool read',
  parameters: {
    type: 'object',
    properties: { path: { type: 'string' }, offset: { type: 'number' }, limit: { type: 'number' } },
    required: ['path'],
    additionalProperties: false,
  },
  async execute(_id, args) {
    return { content: [{ type: 'text', text: args.path }], details: undefined };
  },
};

const assistant = (content, stopReason) => ({
  role: 'assistant', content, api: 'scripted', provider: 'scripted', model: 'scripted', usage, stopReason,
  timestamp: Date.now(),
});

// So many calls in each of so many turns, then the text `done`.
function scripted(turns, calls) {
  let turn = 0;
  return () => {
    const content = [];
    if (turn < turns) {
      for (let i = 0; i < calls; i++) {
        content.push({
          type: 'toolCall', id: `c${turn}-${i}`, name: 'read',
          arguments: { path: 'src/main.rs', offset: 10, limit: 200 },
        });
      }
    } else {
      content.push({ type: 'text', text: 'done' });
    }
    const message = assistant(content, turn++ < turns ? 'toolUse' : 'stop');
    const stream = createAssistantMessageEventStream();
    stream.push({ type: 'start', partial: message });
    stream.push({ type: 'done', reason: message.stopReason, message });
    return stream;
  };
}

let events = 0;
const count = (event) => {
  events++;
  if (event.type === 'tool_execution_end' && event.isError) throw new Error(JSON.stringify(event.result));
};
const history = (n) => Array.from({ length: n }, (_, i) => ({ role: 'user', content: `message ${i}`, timestamp: 0 }));

// The bare loop, as the reference's own users of the lower layer run it.
async function bare(turns, calls, messages) {
  const context = { messages, tools: [tool] };
  const config = { model, convertToLlm: (m) => m };
  const began = performance.now();
  await runAgentLoop([{ role: 'user', content: 'go', timestamp: 0 }], context, config, count, undefined, scripted(turns, calls));
  return performance.now() - began;
}

// With the agent around it, which keeps state and listeners as ours does.
async function whole(turns, calls, messages) {
  const agent = new Agent({ streamFn: scripted(turns, calls), initialState: { model, tools: [tool], messages, systemPrompt: '' } });
  agent.subscribe(count);
  const began = performance.now();
  await agent.prompt('go');
  return performance.now() - began;
}

const median = (values) => values.sort((a, b) => a - b)[values.length >> 1];
const cases = [
  ['one call a turn, 20 turns', 20, 1, 0, 300],
  ['one call a turn, 1,000 turns', 1000, 1, 0, 10],
  ['100 calls in a batch', 1, 100, 0, 300],
  ['1,000 calls in a batch', 1, 1000, 0, 40],
  ['one call a turn, 20 turns, after 10,000 messages', 20, 1, 10000, 40],
];
console.log(`node ${process.version}, microseconds per call, median`);
for (const [name, turns, calls, before, repeats] of cases) {
  const figures = [];
  for (const run of [bare, whole]) {
    const runs = [];
    for (let i = 0; i < repeats + 5; i++) runs.push(await run(turns, calls, history(before)));
    figures.push((median(runs.slice(5)) * 1000 / (turns * calls)).toFixed(2));
  }
  console.log(`${name}: loop ${figures[0]}, with agent ${figures[1]}`);
}
