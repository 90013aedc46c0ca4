// What a team does with the types that openapi-typescript makes, by way of openapi-fetch.
// Arguments and output: as in with_python.py.

import createClient from "openapi-fetch";
import type { components, paths } from "./schema.d.ts";

type Job = components["schemas"]["JobAnswer"];

declare const process: { argv: string[] };

const [url, token, ...given] = process.argv.slice(2);
const [ids, absent, many] = given.map((each): string[] => JSON.parse(each));
const client = createClient<paths>({
  baseUrl: url,
  headers: { Authorization: `Bearer ${token}` },
});

function answered<Answer>(result: { data?: Answer; error?: unknown }): Answer {
  if (result.data === undefined) throw new Error(JSON.stringify(result.error));
  return result.data;
}

async function create(ids: string[]): Promise<Job> {
  const body = {
    operation: "adjust_number",
    subject: "fetch",
    params: { field: "elevation", add: 1 },
    ids,
  };
  const answer = await client.POST("/v1/jobs", {
    body,
    params: { header: { "Idempotency-Key": `fetch ${ids.length}` } },
  });
  const made = answered(answer);
  if (answer.response.status !== 202 || !("id" in made)) throw new Error("no job was made");
  return made;
}

async function wait(job: Job): Promise<Job> {
  for (;;) {
    const now = answered(
      await client.GET("/v1/jobs/{job_id}", { params: { path: { job_id: job.id } } }),
    );
    if (["SUCCEEDED", "FAILED", "CANCELLED"].includes(now.state)) return now;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

const made = await create([...ids, ...absent]);
const again = await create([...ids, ...absent]);
const ended = await wait(made);
const found = answered(
  await client.GET("/v1/jobs", {
    params: { query: { subject: "fetch", state: ["SUCCEEDED"], limit: 10 } },
  }),
);
const skipped = answered(
  await client.GET("/v1/jobs/{job_id}/items", {
    params: { path: { job_id: made.id }, query: { outcome: "skipped" } },
  }),
);
const held = await create(many);
answered(
  await client.POST("/v1/jobs/{job_id}/cancel", { params: { path: { job_id: held.id } } }),
);
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
