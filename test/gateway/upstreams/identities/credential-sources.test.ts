/**
 * Goal: each form of an identity gets its credentials from the place that the cloud's documentation names,
 * with one request to the token endpoint for all requests that wait.
 * Method: the clouds' libraries against the emulated token endpoints, which verify signatures; the standard
 * variables and files lead there. 1,000 requests wait for the first credentials, and again when they expired.
 */
import { generateKeyPairSync } from 'node:crypto'
import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { IdentityConfig } from '../../../../src/config/config.js'
import { EMULATED_KEYS } from '../../../../src/emulator/cloud-credentials.js'
import { startEmulator, type Emulator } from '../../../../src/emulator/server.js'
import {
  sourceOf,
  type Credentials,
} from '../../../../src/gateway/upstreams/identities/credential-sources.js'
import { CloudIdentity } from '../../../../src/gateway/upstreams/identities/cloud-identity.js'
import { newAuthority, newPair } from '../../../helpers/certificates.js'

/** Variables that decide where credentials come from; a test has those that it sets. */
const VARIABLE = /^(?:AWS_|GOOGLE_|GCE_|CLOUDSDK_|AZURE_|IDENTITY_|MSI_)/

function setVariables(t: Test, variables: Record<string, string>): void {
  const before = { ...process.env }
  for (const name of Object.keys(process.env)) {
    if (VARIABLE.test(name)) Reflect.deleteProperty(process.env, name)
  }
  Object.assign(process.env, variables)
  t.teardown(() => {
    for (const name of Object.keys(variables)) Reflect.deleteProperty(process.env, name)
    Object.assign(process.env, before)
  })
}

async function startClouds(t: Test, tls?: { key: string; cert: string }): Promise<Emulator> {
  const emulator = await startEmulator({ ...(tls !== undefined && { tls }) })
  t.teardown(() => emulator.close())
  return emulator
}

const REGION = 'eu-west-1'
const AWS: IdentityConfig & { cloud: 'aws' } = {
  cloud: 'aws',
  accessKeyId: null,
  secretAccessKey: null,
  sessionToken: null,
  profile: null,
  roleArn: null,
  externalId: null,
  sessionName: null,
}

async function credentialsOf(auth: IdentityConfig): Promise<Credentials> {
  return (await sourceOf(auth, REGION)()).credentials
}

/** The time of the gateway; the emulated clouds and the libraries have the real one. */
class Clock {
  aheadMs = 0

  now(): number {
    return Date.now() + this.aheadMs
  }

  random(): number {
    return 0.5
  }

  after(ms: number, due: () => void): () => void {
    const timer = setTimeout(due, ms)
    return () => clearTimeout(timer)
  }
}

/**
 * 1,000 requests get the first credentials of an identity, and 1,000 those after their expiry. `kinds` are
 * the token endpoints that each of the two needs once.
 */
async function isRequestedOnce(
  t: Test,
  { tokens }: Emulator,
  auth: IdentityConfig,
  kinds: readonly string[],
): Promise<void> {
  const clock = new Clock()
  const identity = new CloudIdentity({ cloud: auth.cloud, upstream: 'u' }, sourceOf(auth, REGION), clock)
  const all = (): Promise<Credentials[]> =>
    Promise.all(Array.from({ length: 1_000 }, async () => identity.get(20_000)))
  const requested = (): number[] => kinds.map((kind) => tokens.issued[kind] ?? 0)
  const before = requested()
  // Below five minutes, Microsoft's library does not return its cached token.
  tokens.lifeSeconds = 200
  t.equal(new Set(await all()).size, 1)
  const times = (count: number): number[] => before.map((at) => at + count)
  t.same(requested(), times(1), `${kinds.join()}: first`)
  clock.aheadMs = 200_000
  tokens.lifeSeconds = 600
  t.equal(new Set(await all()).size, 1)
  t.same(requested(), times(2), `${kinds.join()}: expired`)
  identity.close()
}

void t.test('AWS: container, instance metadata, web identity, a role: one request each', async (t) => {
  const emulator = await startClouds(t)
  setVariables(t, { AWS_CONTAINER_CREDENTIALS_FULL_URI: `${emulator.origin}/aws/container` })
  await isRequestedOnce(t, emulator, AWS, ['container'])
  setVariables(t, { AWS_EC2_METADATA_SERVICE_ENDPOINT: emulator.origin })
  await isRequestedOnce(t, emulator, AWS, ['imds'])
  setVariables(t, {
    AWS_WEB_IDENTITY_TOKEN_FILE: join(t.testdir({ token: 'header.payload.signature' }), 'token'),
    AWS_ROLE_ARN: 'arn:aws:iam::123456789012:role/pod',
    AWS_ENDPOINT_URL_STS: `${emulator.origin}/sts`,
  })
  await isRequestedOnce(t, emulator, AWS, ['sts'])
  const { keyId, secret } = EMULATED_KEYS
  setVariables(t, {
    AWS_ACCESS_KEY_ID: keyId,
    AWS_SECRET_ACCESS_KEY: secret,
    AWS_ENDPOINT_URL_STS: `${emulator.origin}/sts`,
  })
  const role = { ...AWS, roleArn: 'arn:aws:iam::123456789012:role/models', externalId: 'e' }
  await isRequestedOnce(t, emulator, role, ['sts'])
  process.env['AWS_SECRET_ACCESS_KEY'] = 'wrong'
  await t.rejects(credentialsOf(role), /signature we calculated does not match/)
})

void t.test('AWS: profiles of the shared files', async (t) => {
  const emulator = await startClouds(t)
  const { keyId, secret } = EMULATED_KEYS
  const folder = t.testdir({
    config: `[profile base]
region = eu-west-1

[profile role]
role_arn = arn:aws:iam::123456789012:role/models
source_profile = base
external_id = e

[profile program]
credential_process = ${join(t.testdirName, 'program')}
`,
    credentials: `[base]
aws_access_key_id = ${keyId}
aws_secret_access_key = ${secret}

[rotated]
aws_access_key_id = ASIAFIRST
aws_secret_access_key = first
aws_session_token = first-session
`,
    program: `#!/bin/sh
echo '{"Version":1,"AccessKeyId":"ASIAPROGRAM","SecretAccessKey":"made","SessionToken":"session","Expiration":"2099-01-01T00:00:00Z"}'
`,
  })
  chmodSync(join(folder, 'program'), 0o755)
  const file = join(folder, 'credentials')
  setVariables(t, {
    AWS_CONFIG_FILE: join(folder, 'config'),
    AWS_SHARED_CREDENTIALS_FILE: file,
    AWS_ENDPOINT_URL_STS: `${emulator.origin}/sts`,
    AWS_EC2_METADATA_DISABLED: 'true',
  })
  const ofProfile = (profile: string): Promise<Credentials> => credentialsOf({ ...AWS, profile })
  t.same(await ofProfile('base'), { keyId, secret, sessionToken: null })
  t.match(await ofProfile('role'), { keyId: /^ASIAEMULATED/ })
  t.equal(emulator.tokens.issued['sts'], 1, 'with a valid signature')
  const program = await sourceOf({ ...AWS, profile: 'program' }, REGION)()
  t.match(program.credentials, { keyId: 'ASIAPROGRAM', secret: 'made', sessionToken: 'session' })
  t.equal(program.expiresAtMs, Date.parse('2099-01-01T00:00:00Z'))
  await t.rejects(ofProfile('missing'), /missing/)

  t.match(await ofProfile('rotated'), { keyId: 'ASIAFIRST' })
  writeFileSync(file, readFileSync(file, 'utf8').replace('ASIAFIRST', 'ASIASECOND'))
  t.match(await ofProfile('rotated'), { keyId: 'ASIASECOND' }, 'the file is read each time')
  process.env['AWS_PROFILE'] = 'rotated'
  t.match(await credentialsOf(AWS), { keyId: 'ASIASECOND' }, 'a profile of the chain')
})

const GOOGLE = { cloud: 'google', credentialsFile: null, project: 'acme-prod' } as const

void t.test('Google: a service account and the metadata server: one request each', async (t) => {
  const emulator = await startClouds(t)
  const { privateKey } = generateKeyPairSync('rsa', {
    modulusLength: 2048,
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
    publicKeyEncoding: { type: 'spki', format: 'pem' },
  })
  const account = {
    type: 'service_account',
    private_key: privateKey,
    client_email: 'models@acme-prod.iam.gserviceaccount.com',
    token_uri: `${emulator.origin}/google/token`,
  }
  const credentialsFile = join(t.testdir({ account: JSON.stringify(account) }), 'account')
  setVariables(t, {})
  await isRequestedOnce(t, emulator, { ...GOOGLE, credentialsFile }, ['google'])
  setVariables(t, {
    GCE_METADATA_HOST: emulator.origin.replace('http://', ''),
    CLOUDSDK_CONFIG: t.testdirName,
  })
  await isRequestedOnce(t, emulator, GOOGLE, ['gce'])
})

void t.test('Google: workload identity federation, alone and for a service account', async (t) => {
  const emulator = await startClouds(t)
  const folder = t.testdir({ token: 'header.payload.signature' })
  const external = {
    type: 'external_account',
    audience: '//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/q',
    subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
    token_url: `${emulator.origin}/google/sts`,
    credential_source: { file: join(folder, 'token') },
  }
  const file = join(folder, 'external.json')
  const impersonated = join(folder, 'impersonated.json')
  writeFileSync(file, JSON.stringify({ ...external, quota_project_id: 'acme-quota' }))
  const service_account_impersonation_url = `${emulator.origin}/google/models:generateAccessToken`
  writeFileSync(impersonated, JSON.stringify({ ...external, service_account_impersonation_url }))
  setVariables(t, { GOOGLE_APPLICATION_CREDENTIALS: file })
  t.match(await credentialsOf(GOOGLE), { token: /^emulated-token-/, quotaProject: 'acme-quota' })
  await isRequestedOnce(t, emulator, GOOGLE, ['google-sts'])
  const auth = { ...GOOGLE, credentialsFile: impersonated }
  await isRequestedOnce(t, emulator, auth, ['google-sts', 'google-impersonation'])
  writeFileSync(join(folder, 'token'), '')
  await t.rejects(credentialsOf(GOOGLE), 'the file is read each time')
})

const AZURE = {
  cloud: 'azure',
  tenantId: null,
  clientId: null,
  clientSecret: null,
  scope: 'https://cognitiveservices.azure.com/.default',
} as const

// Microsoft's library keeps the kind of managed identity for the life of the process: that of App Service is
// in another test file.
void t.test('Azure: the managed identity of a virtual machine: one request', async (t) => {
  const emulator = await startClouds(t)
  setVariables(t, { AZURE_POD_IDENTITY_AUTHORITY_HOST: emulator.origin })
  await isRequestedOnce(t, emulator, AZURE, ['vm'])
})

void t.test('Azure: a client secret, and a federated token: one request each', async (t) => {
  const folder = t.testdir({ token: 'header.payload.signature' })
  const authority = newAuthority(folder, 'ca')
  const pair = newPair(folder, 'entra', { authority })
  const entra = await startClouds(t, {
    key: readFileSync(pair.key, 'utf8'),
    cert: readFileSync(pair.cert, 'utf8'),
  })
  const hosts = { AZURE_AUTHORITY_HOST: entra.origin, NODE_TLS_REJECT_UNAUTHORIZED: '0' }
  const names = { tenantId: 'tenant', clientId: 'client' }
  setVariables(t, hosts)
  await isRequestedOnce(t, entra, { ...AZURE, ...names, clientSecret: 'secret' }, ['entra'])
  const client = { AZURE_TENANT_ID: 'tenant', AZURE_CLIENT_ID: 'client' }
  setVariables(t, { ...hosts, ...client, AZURE_FEDERATED_TOKEN_FILE: join(folder, 'token') })
  await isRequestedOnce(t, entra, AZURE, ['entra'])
  setVariables(t, { ...hosts, ...client, AZURE_CLIENT_SECRET: 'secret' })
  await isRequestedOnce(t, entra, AZURE, ['entra'])
})

void t.test('IBM Cloud: the API key is exchanged for tokens, one request each', async (t) => {
  const emulator = await startClouds(t)
  const auth = {
    cloud: 'ibm',
    apiKey: 'key-of-ibm',
    tokenUrl: `${emulator.origin}/ibm/identity/token`,
  } as const
  await isRequestedOnce(t, emulator, auth, ['ibm'])
  const error = await credentialsOf({ ...auth, apiKey: 'invalid-secret' }).catch((reason: unknown) => reason)
  t.match(error, { message: /^IAM answers 400 BXNIM0415E$/ }, 'the code of IAM, and no key')
  emulator.tokens.mode = 'empty'
  t.match(await credentialsOf(auth), { token: '' }, 'which the identity refuses')
})
