// Reads definitions, one a line, and says of each whether the published schema takes it: null, or what it complains of.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const [modules] = process.argv.slice(2);
const { validate } = createRequire(`${modules}/`)("@serverlessworkflow/sdk");

for await (const line of createInterface({ input: process.stdin })) {
  let complaint = null;
  try {
    validate("Workflow", JSON.parse(line));
  } catch (error) {
    complaint = error.message;
  }
  console.log(JSON.stringify(complaint));
}
