// An identity provider for one test: oidc-provider, at a port of its own. It prints its issuer, reads the client's callback
// address as the first line of standard input, and says "ready". It ends with its standard input.
//
// Anybody signs in with any password. The login is the subject, and their email is LOGIN@plant.example.
import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const [, , part, clientSecret] = process.argv;
const { default: Provider } = await import(pathToFileURL(`${part}/node_modules/oidc-provider/lib/index.js`));

const server = createServer();
server.listen(0, "127.0.0.1");
await once(server, "listening");
const issuer = `http://127.0.0.1:${server.address().port}`;
console.log(issuer);

const lines = createInterface({ input: process.stdin });
const [callback] = await once(lines, "line");
lines.on("close", () => process.exit(0));

const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
const provider = new Provider(issuer, {
  clients: [
    {
      client_id: "agent-runtime",
      client_secret: clientSecret,
      redirect_uris: [callback],
      id_token_signed_response_alg: "ES256",
    },
  ],
  jwks: { keys: [{ ...privateKey.export({ format: "jwk" }), use: "sig", alg: "ES256", kid: "key-1" }] },
  cookies: { keys: ["one test alone"] },
  pkce: { required: () => true },
  claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["name"], groups: ["groups"] },
  async findAccount(_, login) {
    const claims = { sub: login, email: `${login}@plant.example`, email_verified: true, name: "Somebody", groups: ["ops"] };
    return { accountId: login, claims: () => claims };
  },
  // Nobody is asked whether this server may know them.
  async loadExistingGrant(context) {
    const { client, session } = context.oidc;
    const grant = new context.oidc.provider.Grant({ clientId: client.clientId, accountId: session.accountId });
    grant.addOIDCScope("openid email profile groups");
    await grant.save();
    return grant;
  },
});
server.on("request", provider.callback());
console.log("ready");
