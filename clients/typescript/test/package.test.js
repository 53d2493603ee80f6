import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const run = (command, args, options = {}) => execFileSync(command, args, { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"], ...options });
// Of all calls of the API: a call adds some 30 bytes.
const MOST_BYTES = 12.25 * 1024;
let directory;

/** The package, as `make clients` makes it, unpacked into a project that uses it. */
before(() => {
  directory = mkdtempSync(join(tmpdir(), "agent-runtime-client-"));
  const packed = run(here("../pack"), [directory]).trim();
  run("tar", ["-xzf", packed, "-C", directory]);
  writeFileSync(join(directory, "package.json"), '{"private":true,"type":"module"}');
  run("mkdir", ["-p", join(directory, "node_modules")]);
  symlinkSync(join(directory, "package"), join(directory, "node_modules/agent-runtime"));
});
after(() => rmSync(directory, { recursive: true, force: true }));

test("the package has what a browser loads, the types, and what people read", () => {
  assert.deepEqual(readdirSync(join(directory, "package")).sort(), ["CHANGELOG.md", "LICENSE", "README.md", "package.json", "src"]);
  const files = readdirSync(join(directory, "package/src"));
  const scripts = files.filter((file) => file.endsWith(".js"));
  assert.deepEqual(scripts.map((file) => file.replace(".js", ".d.ts")).concat("types.d.ts").sort(), files.filter((file) => file.endsWith(".d.ts")).sort());
  const sizes = scripts.map((file) => gzipSync(readFileSync(join(directory, "package/src", file)), { level: 9 }).length);
  const bytes = sizes.reduce((sum, size) => sum + size);
  console.log(`client ${bytes} bytes compressed, in ${scripts.length} files`);
  assert.ok(bytes <= MOST_BYTES, `the client has ${bytes} bytes`);
});

test("it loads as what is published, also where modules are required", () => {
  const print = 'console.log(Object.keys(client).sort().join(" "), Object.keys(hooks).sort().join(" "));';
  const esm = `import * as client from "agent-runtime"; import * as hooks from "agent-runtime/webhooks"; ${print}`;
  const wanted = "AgentRuntime AgentRuntimeError Page RunReader VERSION WebhookSignatureError parseEvent WebhookSignatureError parseEvent\n";
  assert.equal(run(process.execPath, ["--input-type=module", "-e", esm], { cwd: directory }), wanted);
  const required = `const client = require("agent-runtime"), hooks = require("agent-runtime/webhooks"); ${print}`;
  assert.equal(run(process.execPath, ["--no-warnings", "--experimental-require-module", "--input-type=commonjs", "-e", required], { cwd: directory }).replace("__esModule ", ""), wanted);
});

test("the compiler takes the right uses and refuses the wrong ones", () => {
  writeFileSync(join(directory, "uses.ts"), readFileSync(here("types.test-d.ts")));
  const tsc = join(run(here("../../../tests/setup/where"), []).trim(), "description/node_modules/.bin/tsc");
  for (const [module, moduleResolution] of [["nodenext", "nodenext"], ["esnext", "bundler"]])
    try {
      const compilerOptions = { strict: true, noEmit: true, target: "es2022", module, moduleResolution, lib: ["es2022", "dom", "dom.iterable"], types: [] };
      writeFileSync(join(directory, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["uses.ts"] }));
      run(tsc, [], { cwd: directory });
    } catch (error) {
      assert.fail(error.stdout);
    }
});
