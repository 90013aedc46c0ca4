// What a team does with the functions that @hey-api/openapi-ts makes.
// Arguments and output: as in with_python.py.

import { client } from "./sdk/client.gen.ts";
import { cancelJob, createJob, getJob, listItems, listJobs } from "./sdk/sdk.gen.ts";
import type { JobAnswer } from "./sdk/types.gen.ts";

declare const process: { argv: string[] };

const [url, token, ...given] = process.argv.slice(2);
const [ids, absent, many] = given.map((each): string[] => JSON.parse(each));
client.setConfig({ baseUrl: url, auth: token, throwOnError: true });

async function create(ids: string[]): Promise<JobAnswer> {
  const { data, response } = await createJob({
    body: {
      operation: "adjust_number",
      subject: "sdk",
      params: { field: "elevation", add: 1 },
      ids,
    },
    headers: { "Idempotency-Key": `sdk ${ids.length}` },
    throwOnError: true,
  });
  if (response.status !== 202 || !("id" in data)) throw new Error("no job was made");
  return data;
}

async function wait(job: JobAnswer): Promise<JobAnswer> {
  for (;;) {
    const { data: now } = await getJob({ path: { job_id: job.id }, throwOnError: true });
    if (["SUCCEEDED", "FAILED", "CANCELLED"].includes(now.state)) return now;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

const made = await create([...ids, ...absent]);
const again = await create([...ids, ...absent]);
const ended = await wait(made);
const { data: found } = await listJobs({
  query: { subject: "sdk", state: ["SUCCEEDED"], limit: 10 },
  throwOnError: true,
});
const { data: skipped } = await listItems({
  path: { job_id: made.id },
  query: { outcome: "skipped" },
  throwOnError: true,
});
const held = await create(many);
await cancelJob({ path: { job_id: held.id }, throwOnError: true });
console.log(
  JSON.stringify({
    same: again.id === made.id,
    ended: [ended.state, ended.succeeded, ended.skipped],
    listed: found.jobs.map((job) => job.id === made.id),
    items: skipped.items.map((item) => item.id).sort(),
    held: held.state,
    cancelled: (await wait(held)).state,
  }),
);
