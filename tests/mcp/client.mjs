// Walks a server with the official TypeScript client and prints what it saw as one JSON object.
//
//     node client.mjs stdio COMMAND ARGUMENT...
//     node client.mjs http URL PID
//
// The folder that has the package is the working folder.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import path from "node:path";

const require = createRequire(path.join(process.cwd(), "here.js"));
const load = (name) => import(pathToFileURL(require.resolve(name)));
const { Client } = await load("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = await load("@modelcontextprotocol/sdk/client/stdio.js");
const { StreamableHTTPClientTransport } = await load("@modelcontextprotocol/sdk/client/streamableHttp.js");
const { ToolListChangedNotificationSchema } = await load("@modelcontextprotocol/sdk/types.js");

const [kind, ...rest] = process.argv.slice(2);
const transport =
  kind === "http"
    ? new StreamableHTTPClientTransport(new URL(rest[0]))
    : new StdioClientTransport({ command: rest[0], args: rest.slice(1), env: process.env });

const client = new Client({ name: "walk", version: "1.0.0" });
const told = new Promise((resolve) => {
  client.setNotificationHandler(ToolListChangedNotificationSchema, () => resolve(true));
});
await client.connect(transport);

function seen(result) {
  const facts = result._meta?.["cofferdam/call"] ?? {};
  return {
    text: result.content[0]?.text ?? "",
    is_error: Boolean(result.isError),
    ended_by: facts.ended_by ?? null,
    fuel: facts.receipt?.fuel ?? 0,
  };
}

const call = (name, args, options) => client.callTool({ name, arguments: args }, undefined, options);

/** Cancels a call once it has reported something. */
async function cancelled() {
  const abort = new AbortController();
  try {
    await call("calm_patient", {}, { signal: abort.signal, onprogress: () => abort.abort("enough") });
    return false;
  } catch {
    return abort.signal.aborted;
  }
}

const saw = { protocol: transport.protocolVersion ?? null, server: client.getServerVersion().name };
saw.tools = (await client.listTools()).tools.map((tool) => tool.name).sort();
const reports = [];
const onprogress = ({ progress, message }) => reports.push([progress, message]);
for (const [step, tool, args] of [
  ["sum", "calc", { expressions: ["1/3 + 1/6"] }],
  ["trap", "crash", { message: "on purpose" }],
  ["timeout", "spin", {}],
  ["blocked", "write_file", { path: "/workspace/secret.txt", content: "x" }],
  ["asked", "grep", { path: "/workspace", pattern: "x" }],
  ["invalid", "nap", { ms: "soon" }],
  ["progress", "calm_chatter", { lines: 20 }],
]) {
  saw[step] = seen(await call(tool, args, { onprogress }));
}
saw.reports = reports;
try {
  await call("missing", {});
} catch (problem) {
  saw.missing = problem.message;
}
saw.cancelled = await cancelled();
saw.after = seen(await call("calc", { expressions: ["6 * 7"] }));
if (kind === "http") {
  process.kill(Number(rest[1]), "SIGHUP");
  saw.changed = await told;
}
console.log(JSON.stringify(saw));
await client.close();
