/**
 * Goal: each identity of each cloud authorizes requests through the cloud's own library and the standard
 * variables; requests wait for one token; a failing token endpoint is 503 `upstream_credential`.
 * Method: a whole gateway in front of the emulated clouds, which verify signatures, tokens and expiry.
 */
import { generateKeyPairSync } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { EMULATED_KEYS } from '../../../src/emulator/cloud-credentials.js'
import { startEmulator, type Emulator } from '../../../src/emulator/server.js'
import { awsClock } from '../../../src/gateway/upstreams/identities/sign-aws.js'
import { newAuthority, newPair } from '../../helpers/certificates.js'
import { startGateway, type TestGateway } from '../../helpers/gateway.js'
import { until } from '../../helpers/upstream.js'
import { IS_LONG, ofToday } from '../../helpers/long-suite.js'

/** A test file may take three minutes; this one takes a quarter of that on a busy machine. */
t.setTimeout(170_000)

const AWS_VARIABLES = [
  'AWS_ACCESS_KEY_ID',
  'AWS_SECRET_ACCESS_KEY',
  'AWS_SESSION_TOKEN',
  'AWS_PROFILE',
  'AWS_CONTAINER_CREDENTIALS_FULL_URI',
]

/** Sets variables for one test. */
function setVariables(t: Test, variables: Record<string, string | undefined>): void {
  const none = Object.fromEntries(AWS_VARIABLES.map((name) => [name, undefined]))
  for (const [name, value] of Object.entries({ ...none, ...variables })) {
    const before = process.env[name]
    if (value === undefined) Reflect.deleteProperty(process.env, name)
    else process.env[name] = value
    t.teardown(() => {
      if (before === undefined) Reflect.deleteProperty(process.env, name)
      else process.env[name] = before
    })
  }
}

async function startClouds(t: Test, tls?: { key: string; cert: string }): Promise<Emulator> {
  const emulator = await startEmulator({ models: 'any', ...(tls !== undefined && { tls }) })
  t.teardown(() => emulator.close())
  return emulator
}

function bedrock(emulator: Emulator, auth: string): string {
  return `platform: bedrock, dialect: anthropic, region: eu-west-1, base_url: '${emulator.origin}', auth: { aws: ${auth} }`
}

/** For requests that wait for connections or libraries on a busy machine. */
const PATIENT = 'timeouts: { connect_ms: 30000 }'

const ROUTES = `  - { prefix: eu.anthropic., upstream: cloud }
  - { prefix: 'claude-sonnet-4-5@', upstream: cloud }
  - { prefix: gemini-on-vertex, targets: [{ upstream: cloud, model: gemini-2.5-pro }] }
  - { prefix: azure-, targets: [{ upstream: cloud, model: gpt-5.4 }] }`

function start(t: Test, cloud: string, routes = ROUTES): Promise<TestGateway> {
  return startGateway(t, { cloud, routes })
}

const CLAUDE = 'eu.anthropic.claude-sonnet-4-5-20250929-v1:0'

async function ask(
  gateway: TestGateway,
  model = CLAUDE,
  more: object = {},
): Promise<{ status: number; text: string }> {
  const messages = [{ role: 'user', content: 'Hello' }]
  const reply = await gateway.chat({ model, messages, ...more })
  return { status: reply.status, text: await reply.text() }
}

async function serves(t: Test, gateway: TestGateway, model = CLAUDE): Promise<void> {
  const whole = await ask(gateway, model)
  t.equal(whole.status, 200, whole.text)
  const stream = await ask(gateway, model, { stream: true })
  t.match(stream.text, /data: \[DONE\]/)
}

void t.test('AWS: keys in the file, signed and verified', async (t) => {
  const emulator = await startClouds(t)
  const { keyId, secret } = EMULATED_KEYS
  const keys = `{ access_key_id: ${keyId}, secret_access_key: ${secret} }`
  await serves(t, await start(t, bedrock(emulator, keys)))
  const wrong = `{ access_key_id: ${keyId}, secret_access_key: wrong-secret-key }`
  const { status, text } = await ask(await start(t, bedrock(emulator, wrong)))
  t.equal(status, 502, text)
  t.notMatch(text, /wrong-secret-key|AKIA/)
})

/** 1,000 with `SLUICE_LONG=1`. */
const AT_ONCE = IS_LONG ? 1_000 : 50

void t.test('AWS: the container chain, once for all requests that wait', async (t) => {
  const emulator = await startClouds(t)
  setVariables(t, {
    AWS_CONTAINER_CREDENTIALS_FULL_URI: `${emulator.origin}/aws/container`,
  })
  const gateway = await start(t, `${bedrock(emulator, 'default')}, ${PATIENT}`)
  const replies = await Promise.all(Array.from({ length: AT_ONCE }, () => ask(gateway)))
  t.same(new Set(replies.map(({ status }) => status)), new Set([200]))
  t.equal(emulator.tokens.issued['container'], 1)
  const secrets = /emulated-secret|emulated\/session/
  t.notMatch(JSON.stringify(gateway.lines), secrets)
  t.notMatch(await gateway.metrics.text(), secrets)
})

void t.test('AWS: instance metadata, environment and a role of STS', async (t) => {
  const emulator = await startClouds(t)
  setVariables(t, { AWS_EC2_METADATA_SERVICE_ENDPOINT: emulator.origin })
  await serves(t, await start(t, bedrock(emulator, 'default')))
  t.equal(emulator.tokens.issued['imds'], 1)
  setVariables(t, {
    AWS_ACCESS_KEY_ID: EMULATED_KEYS.keyId,
    AWS_SECRET_ACCESS_KEY: EMULATED_KEYS.secret,
    AWS_ENDPOINT_URL_STS: `${emulator.origin}/sts`,
  })
  await serves(t, await start(t, bedrock(emulator, 'default')))
  const role = '{ role_arn: "arn:aws:iam::123456789012:role/models", session_name: sluice, external_id: e }'
  await serves(t, await start(t, bedrock(emulator, role)))
  t.equal(emulator.tokens.issued['sts'], 1)
})

void t.test('AWS: a web identity', async (t) => {
  const emulator = await startClouds(t)
  const file = join(t.testdir({ token: 'header.payload.signature' }), 'token')
  setVariables(t, {
    AWS_WEB_IDENTITY_TOKEN_FILE: file,
    AWS_ROLE_ARN: 'arn:aws:iam::123456789012:role/pod',
    AWS_ENDPOINT_URL_STS: `${emulator.origin}/sts`,
  })
  await serves(t, await start(t, bedrock(emulator, 'default')))
  t.equal(emulator.tokens.issued['sts'], 1)
})

void t.test(
  'AWS: a wrong clock is corrected from the reply, and the request sent a second time',
  async (t) => {
    const emulator = await startClouds(t)
    t.teardown(() => {
      awsClock.offsetMs = 0
    })
    emulator.tokens.skewMs = 3_600_000
    const { keyId, secret } = EMULATED_KEYS
    const gateway = await start(
      t,
      bedrock(emulator, `{ access_key_id: ${keyId}, secret_access_key: ${secret} }`),
    )
    const replies = await Promise.all(Array.from({ length: 20 }, () => ask(gateway)))
    t.same(new Set(replies.map(({ status }) => status)), new Set([200]))
    const { length } = emulator.ledger
    t.equal((await ask(gateway)).status, 200)
    t.equal(emulator.ledger.length, length + 1, 'the offset stays')
  },
)

void t.test('AWS: expired session keys are replaced once', async (t) => {
  const emulator = await startClouds(t)
  setVariables(t, {
    AWS_CONTAINER_CREDENTIALS_FULL_URI: `${emulator.origin}/aws/container`,
  })
  const gateway = await start(t, bedrock(emulator, 'default'))
  t.equal((await ask(gateway)).status, 200)
  // They expire before the time in the reply of the token endpoint.
  emulator.tokens.agedMs = 3_650_000
  emulator.tokens.lifeSeconds = 7_200
  const { status, text } = await ask(gateway)
  t.equal(status, 200, text)
  t.equal(emulator.tokens.issued['container'], 2)
})

void t.test('a token endpoint that fails is 503, and its state is shown', async (t) => {
  const emulator = await startClouds(t)
  setVariables(t, {
    AWS_CONTAINER_CREDENTIALS_FULL_URI: `${emulator.origin}/aws/container`,
    AWS_EC2_METADATA_DISABLED: 'true',
  })
  for (const mode of ofToday(['fail', 'lie', 'hang'] as const, 3)) {
    emulator.tokens.mode = mode
    const gateway = await start(t, bedrock(emulator, 'default'))
    const { status, text } = await ask(gateway)
    t.equal(status, 503, mode)
    const { error } = JSON.parse(text) as { error: { message: string; kind: string } }
    t.match(error.message, /no valid credentials/)
    t.equal(error.kind, 'upstream_credential')
    if (mode === 'hang') continue
    await until(() => gateway.plane.ready().checks['credentials'] !== 'ok')
    const { checks, degraded } = gateway.plane.ready()
    t.match(checks['credentials'], /^cloud: refresh fails, no valid credentials/)
    t.same(degraded, ['credentials'])
    t.match(
      await gateway.metrics.text(),
      /sluice_credential_refreshes_total\{upstream="cloud",result="failed"\} [1-9]/,
    )
    emulator.tokens.mode = 'ok'
    await until(() => gateway.plane.ready().checks['credentials'] === 'ok')
    t.equal((await ask(gateway)).status, 200, 'it recovers in the background')
  }
})

void t.test('a failing identity falls back to the next target', async (t) => {
  const emulator = await startClouds(t)
  setVariables(t, {
    AWS_CONTAINER_CREDENTIALS_FULL_URI: `${emulator.origin}/aws/container`,
    AWS_EC2_METADATA_DISABLED: 'true',
  })
  emulator.tokens.mode = 'fail'
  const routes =
    '  - { model: claude-anywhere, targets: [{ upstream: cloud, model: eu.anthropic.claude-sonnet-4-5 }], fallback: [{ upstream: anthropic, model: claude-sonnet-4-5 }] }'
  const gateway = await start(t, bedrock(emulator, 'default'), routes)
  const { status, text } = await ask(gateway, 'claude-anywhere')
  t.equal(status, 200, text)
})

void t.test('tokens are refreshed while requests run', async (t) => {
  const emulator = await startClouds(t)
  setVariables(t, {
    AWS_CONTAINER_CREDENTIALS_FULL_URI: `${emulator.origin}/aws/container`,
  })
  emulator.tokens.lifeSeconds = 2
  const gateway = await start(t, bedrock(emulator, 'default'))
  const endMs = Date.now() + 6_000
  const statuses = new Set<number>()
  while (Date.now() < endMs) {
    statuses.add((await ask(gateway)).status)
    await pause(20)
  }
  t.same(statuses, new Set([200]))
  const issued = emulator.tokens.issued['container'] ?? 0
  t.ok(issued >= 3 && issued <= 6, `${issued} requests for keys of 2 s in 6 s`)
})

/** A service account whose token address is the emulator. */
function serviceAccount(t: Test, tokenUri: string): string {
  const { privateKey } = generateKeyPairSync('rsa', {
    modulusLength: 2048,
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
    publicKeyEncoding: { type: 'spki', format: 'pem' },
  })
  const file = join(t.testdir(), 'account.json')
  const account = {
    type: 'service_account',
    project_id: 'acme-prod',
    private_key_id: '1',
    private_key: privateKey,
    client_email: 'models@acme-prod.iam.gserviceaccount.com',
    client_id: '1',
    token_uri: tokenUri,
  }
  writeFileSync(file, JSON.stringify(account))
  return file
}

const VERTEX = 'platform: vertex, project: acme-prod, location: us-east5'

void t.test('Google: a service account with its own token address', async (t) => {
  const emulator = await startClouds(t)
  const file = serviceAccount(t, `${emulator.origin}/google/token`)
  const claude = `${VERTEX}, dialect: anthropic, base_url: '${emulator.origin}', auth: { google: { credentials_file: '${file}' } }`
  await serves(t, await start(t, claude), 'claude-sonnet-4-5@20250929')
  t.equal(emulator.tokens.issued['google'], 1)
  setVariables(t, { GOOGLE_APPLICATION_CREDENTIALS: file })
  const gemini = `${VERTEX}, dialect: gemini, base_url: '${emulator.origin}', auth: { google: default }`
  await serves(t, await start(t, gemini), 'gemini-on-vertex')
  t.equal(emulator.tokens.issued['google'], 2)
})

void t.test('Google: the metadata server', async (t) => {
  const emulator = await startClouds(t)
  setVariables(t, {
    GCE_METADATA_HOST: emulator.origin.replace('http://', ''),
    GOOGLE_APPLICATION_CREDENTIALS: undefined,
    CLOUDSDK_CONFIG: t.testdir(),
  })
  const gemini = `${VERTEX}, dialect: gemini, base_url: '${emulator.origin}', auth: { google: default }`
  await serves(t, await start(t, gemini), 'gemini-on-vertex')
  t.equal(emulator.tokens.issued['gce'], 1)
})

void t.test('Azure: App Service, then a client secret and a federated token of Entra', async (t) => {
  const emulator = await startClouds(t)
  const upstream = `platform: azure, dialect: openai, ${PATIENT}, base_url: '${emulator.origin}'`
  setVariables(t, {
    IDENTITY_ENDPOINT: `${emulator.origin}/azure/identity`,
    IDENTITY_HEADER: 'header',
  })
  const gateway = await start(t, `${upstream}, auth: { azure: default }`)
  await Promise.all(Array.from({ length: 20 }, () => serves(t, gateway, 'azure-gpt')))
  t.equal(emulator.tokens.issued['app-service'], 1)

  const folder = t.testdir({ token: 'header.payload.signature' })
  const authority = newAuthority(folder, 'ca')
  const pair = newPair(folder, 'entra', { authority })
  const entra = await startClouds(t, {
    key: readFileSync(pair.key, 'utf8'),
    cert: readFileSync(pair.cert, 'utf8'),
  })
  setVariables(t, { AZURE_AUTHORITY_HOST: entra.origin, NODE_TLS_REJECT_UNAUTHORIZED: '0' })
  const secure = `platform: azure, dialect: openai, ${PATIENT}, base_url: '${entra.origin}', tls: { ca: '${authority.cert}' }`
  const secret = '{ azure: { tenant_id: tenant, client_id: client, client_secret: very-secret } }'
  await serves(t, await start(t, `${secure}, auth: ${secret}`), 'azure-gpt')
  t.equal(entra.tokens.issued['entra'], 1)
  setVariables(t, {
    AZURE_TENANT_ID: 'tenant',
    AZURE_CLIENT_ID: 'client',
    AZURE_FEDERATED_TOKEN_FILE: join(folder, 'token'),
  })
  await serves(t, await start(t, `${secure}, auth: { azure: default }`), 'azure-gpt')
  t.equal(entra.tokens.issued['entra'], 2)
})

void t.test('IBM Cloud: watsonx gets a token of IAM for the API key', async (t) => {
  const emulator = await startClouds(t)
  const auth = `auth: { ibm: { api_key: key-of-ibm, token_url: '${emulator.origin}/ibm/identity/token' } }`
  const watsonx = `preset: watsonx, base_url: '${emulator.origin}/v1', allow_private_address: true, ${auth}, ${PATIENT}`
  const gateway = await start(t, watsonx)
  await serves(t, gateway, 'azure-granite')
  t.equal(emulator.tokens.issued['ibm'], 1, 'one token for all requests')

  emulator.tokens.mode = 'fail'
  const other = await start(t, watsonx.replace('key-of-ibm', 'another-key'))
  const { status, text } = await ask(other, 'azure-granite')
  t.equal(status, 503)
  t.match(text, '"kind":"upstream_credential"')
  t.notMatch(text, 'another-key')
})
