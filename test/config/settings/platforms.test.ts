/**
 * Goal: the loader accepts every combination of platform, dialect and credential that exists, derives the
 * address, and refuses each other one with its line.
 * Method: the configuration of an upstream as text; the address or the whole printed line is compared.
 */
import t from 'tap'
import { shownConfig } from '../../../src/config/masked-config.js'
import { secretsOf } from '../../../src/config/secret-settings.js'
import type { UpstreamConfig } from '../../../src/config/config.js'
import type { Env } from '../../../src/config/load-config.js'
import { loadText, problemsOf } from '../sample.js'

const FILES = { '/etc/sluice/google.json': '{"type":"service_account"}', '/etc/sluice/text': 'x' }

function text(upstream: string): string {
  return `upstreams:\n  cloud: ${upstream}\nroutes:\n  - { prefix: claude-, upstream: cloud }\n`
}

function load(upstream: string, env: Env = {}): UpstreamConfig {
  const loaded = loadText(text(upstream), { KEY: 'secret', ...env }, FILES)
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.errors))
  const config = loaded.config.upstreams['cloud']
  if (config === undefined) throw new Error('no upstream')
  return config
}

const COMBINATIONS =
  'bedrock with anthropic, converse, openai, openai-chat, openai-responses; vertex with anthropic, gemini; azure with openai, openai-chat, openai-responses, anthropic'

void t.test('the platform and its keys decide the address', (t) => {
  const AWS = 'auth: { aws: default }'
  const GOOGLE = 'auth: { google: default }'
  const AZURE = 'auth: { azure: default }'
  const cases: [string, string, Env?][] = [
    [
      `platform: bedrock, dialect: anthropic, region: eu-west-1, ${AWS}`,
      'https://bedrock-runtime.eu-west-1.amazonaws.com',
    ],
    [
      `platform: bedrock, dialect: converse, region: us-east-1, ${AWS}`,
      'https://bedrock-runtime.us-east-1.amazonaws.com',
    ],
    [
      `platform: bedrock, dialect: openai-chat, region: us-west-2, api_key: '\${KEY}'`,
      'https://bedrock-runtime.us-west-2.amazonaws.com/openai/v1',
    ],
    [
      `platform: bedrock, dialect: openai-chat, region: us-west-2, api_key: k, base_url: https://bedrock-mantle.us-west-2.api.aws/v1`,
      'https://bedrock-mantle.us-west-2.api.aws/v1',
    ],
    [
      `platform: bedrock, dialect: converse, region: cn-north-1, ${AWS}`,
      'https://bedrock-runtime.cn-north-1.amazonaws.com.cn',
    ],
    [
      `platform: bedrock, dialect: converse, region: us-east-1, ${AWS}`,
      'https://bedrock-runtime-fips.us-east-1.api.aws',
      { AWS_USE_FIPS_ENDPOINT: 'true', AWS_USE_DUALSTACK_ENDPOINT: 'true' },
    ],
    [
      `platform: bedrock, dialect: converse, region: us-east-1, ${AWS}`,
      'http://127.0.0.1:4566',
      { AWS_ENDPOINT_URL_BEDROCK_RUNTIME: 'http://127.0.0.1:4566/' },
    ],
    [
      `platform: bedrock, dialect: converse, region: us-east-1, ${AWS}, base_url: https://vpce-1.example.com`,
      'https://vpce-1.example.com',
      { AWS_ENDPOINT_URL: 'http://127.0.0.1:4566/' },
    ],
    [
      `platform: vertex, dialect: anthropic, project: acme-prod, location: us-east5, ${GOOGLE}`,
      'https://us-east5-aiplatform.googleapis.com/v1/projects/acme-prod/locations/us-east5/publishers/anthropic',
    ],
    [
      `platform: vertex, dialect: anthropic, project: acme-prod, location: eu, ${GOOGLE}`,
      'https://aiplatform.eu.rep.googleapis.com/v1/projects/acme-prod/locations/eu/publishers/anthropic',
    ],
    [
      `platform: vertex, dialect: gemini, project: acme-prod, location: global, ${GOOGLE}`,
      'https://aiplatform.googleapis.com/v1beta1/projects/acme-prod/locations/global/publishers/google',
    ],
    [
      `platform: vertex, dialect: gemini, project: p, location: global, ${GOOGLE}, base_url: 'http://127.0.0.1:1/v1beta1'`,
      'http://127.0.0.1:1/v1beta1/projects/p/locations/global/publishers/google',
    ],
    [
      `platform: vertex, dialect: gemini, api_key: k`,
      'https://aiplatform.googleapis.com/v1beta1/publishers/google',
    ],
    [
      `platform: azure, dialect: openai, base_url: https://acme.openai.azure.com, ${AZURE}`,
      'https://acme.openai.azure.com/openai/v1',
    ],
    [
      `platform: azure, dialect: openai, base_url: https://acme.openai.azure.com/openai/v1/, ${AZURE}`,
      'https://acme.openai.azure.com/openai/v1',
    ],
    [
      `platform: azure, dialect: openai, base_url: https://acme.openai.azure.com, api_version: 2024-10-21, deployments: { gpt-5.4: prod-gpt }, api_key: k`,
      'https://acme.openai.azure.com/openai',
    ],
    [
      `platform: azure, dialect: anthropic, base_url: https://acme.services.ai.azure.com, ${AZURE}`,
      'https://acme.services.ai.azure.com/anthropic/v1',
    ],
    [
      `platform: azure, dialect: anthropic, base_url: https://acme.services.ai.azure.com/anthropic, ${AZURE}`,
      'https://acme.services.ai.azure.com/anthropic/v1',
    ],
  ]
  for (const [upstream, address, env] of cases) {
    t.equal(load(`{ ${upstream} }`, env).baseUrl, address, upstream)
  }
  const dated = load(
    '{ platform: azure, dialect: openai, base_url: https://a.openai.azure.com, api_version: 2024-10-21, api_key: k }',
  )
  t.same(dated.query, { 'api-version': '2024-10-21' })
  t.end()
})

void t.test('identities are resolved', (t) => {
  const bedrock = (auth: string): unknown =>
    load(`{ platform: bedrock, dialect: converse, region: us-east-1, auth: { aws: ${auth} } }`).auth
  const none = {
    ...{ cloud: 'aws', accessKeyId: null, secretAccessKey: null, sessionToken: null },
    ...{ profile: null, roleArn: null, externalId: null, sessionName: null },
  }
  t.same(bedrock('default'), none)
  t.same(bedrock('{ access_key_id: AKIA1, secret_access_key: s, session_token: t }'), {
    ...none,
    ...{ accessKeyId: 'AKIA1', secretAccessKey: 's', sessionToken: 't' },
  })
  t.same(bedrock('{ profile: prod }'), { ...none, profile: 'prod' })
  t.same(bedrock('{ role_arn: "arn:aws:iam::1:role/r", external_id: e, session_name: sluice }'), {
    ...none,
    ...{ roleArn: 'arn:aws:iam::1:role/r', externalId: 'e', sessionName: 'sluice' },
  })
  const google = load(
    '{ platform: vertex, dialect: gemini, project: p, location: global, auth: { google: { credentials_file: google.json } } }',
  )
  t.same(google.auth, {
    cloud: 'google',
    credentialsFile: '/etc/sluice/google.json',
    project: 'p',
  })
  const azure = load(
    '{ platform: azure, dialect: openai, base_url: https://a.openai.azure.com, auth: { azure: { tenant_id: t, client_id: c, client_secret: s }, scope: https://ai.azure.com/.default } }',
  )
  t.same(azure.auth, {
    ...{ cloud: 'azure', tenantId: 't', clientId: 'c', clientSecret: 's' },
    scope: 'https://ai.azure.com/.default',
  })
  t.end()
})

void t.test('each combination that does not exist is refused with its line', (t) => {
  const at = '/etc/sluice/gateway.yaml:2'
  const cases: [string, string][] = [
    [
      'platform: bedrock, dialect: gemini, region: us-east-1, auth: { aws: default }',
      `.dialect: the platform bedrock has no dialect gemini; use ${COMBINATIONS}`,
    ],
    [
      'platform: vertex, dialect: openai, project: p, location: global, auth: { google: default }',
      `.dialect: the platform vertex has no dialect openai; use ${COMBINATIONS}`,
    ],
    [
      'platform: azure, dialect: gemini, base_url: https://a.openai.azure.com, api_key: k',
      `.dialect: the platform azure has no dialect gemini; use ${COMBINATIONS}`,
    ],
    [
      'dialect: converse, base_url: https://example.com/v1',
      `.dialect: converse needs platform: bedrock; use ${COMBINATIONS}`,
    ],
    [
      'dialect: openai, base_url: https://example.com/v1, auth: { aws: default }',
      `.auth: needs a platform; use ${COMBINATIONS}`,
    ],
    [
      'preset: watsonx, base_url: https://example.com/v1, api_key: k, auth: { ibm: { api_key: k } }',
      '.auth: must be removed: api_key is set already',
    ],
    [
      'preset: watsonx, base_url: https://example.com/v1, auth: { ibm: { api_key: k, token_url: "http://example.com" } }',
      '.auth.ibm.token_url: must be a URL with https://',
    ],
    [
      'platform: azure, dialect: openai, base_url: https://a.openai.azure.com, auth: { ibm: { api_key: k } }',
      '.auth.ibm: the platform azure has identities of azure only: use auth: { azure: default } or api_key',
    ],
    [
      'platform: bedrock, dialect: converse, region: us-east-1, auth: { google: default }',
      '.auth.google: the platform bedrock has identities of aws only: use auth: { aws: default } or api_key',
    ],
    [
      'platform: bedrock, dialect: converse, auth: { aws: default }',
      '.region: is required for the platform bedrock, as in eu-west-1',
    ],
    [
      'platform: vertex, dialect: gemini, location: global, auth: { google: default }',
      '.project: is required for the platform vertex',
    ],
    [
      'platform: vertex, dialect: gemini, project: p, auth: { google: default }',
      '.location: is required for the platform vertex, as in global or us-east5',
    ],
    [
      'platform: azure, dialect: openai, auth: { azure: default }',
      '.base_url: is required for the platform azure, as in https://RESOURCE.openai.azure.com',
    ],
    [
      'platform: bedrock, dialect: converse, region: us-east-1',
      '.auth: is required: use auth: { aws: default } or api_key',
    ],
    [
      'platform: bedrock, dialect: converse, region: us-east-1, api_key: k, auth: { aws: default }',
      '.auth: must be removed: api_key is set already',
    ],
    [
      'platform: bedrock, dialect: converse, region: us-east-1, location: global, api_key: k',
      '.location: must be removed: it belongs to the platform vertex',
    ],
    [
      'dialect: anthropic, base_url: https://api.anthropic.com/v1, region: us-east-1',
      '.region: needs a platform: it belongs to the platform bedrock',
    ],
    [
      'platform: azure, dialect: openai, preset: groq, base_url: https://a.openai.azure.com, api_key: k',
      '.preset: must be removed: the platform azure decides these values',
    ],
    [
      'platform: bedrock, dialect: converse, region: us-east-1, auth: { aws: always }',
      '.auth.aws: must be default, or a map with access_key_id and secret_access_key (and session_token), with profile, or with role_arn (and external_id, session_name)',
    ],
    [
      'platform: bedrock, dialect: converse, region: us-east-1, auth: { aws: { role_arn: models } }',
      '.auth.aws.role_arn: must be the ARN of a role, such as arn:aws:iam::123456789012:role/models',
    ],
    [
      'platform: bedrock, dialect: converse, region: us-east-1, auth: { aws: { role_arn: "arn:aws:iam::1:role/a", session_name: a b } }',
      '.auth.aws.session_name: must have 2 to 64 letters, digits and characters of _+=,.@-',
    ],
    [
      'platform: vertex, dialect: gemini, project: p, location: global, auth: { google: { credentials_file: gone.json } }',
      '.auth.google.credentials_file: the file "gone.json" does not exist',
    ],
    [
      'platform: vertex, dialect: gemini, project: p, location: global, auth: { google: { credentials_file: text } }',
      '.auth.google.credentials_file: the file contains no JSON object',
    ],
    [
      'dialect: openai, base_url: https://example.com/v1, anthropic_version: 2023-06-01',
      '.anthropic_version: needs the dialect anthropic',
    ],
  ]
  for (const [upstream, problem] of cases) {
    const [first = '', ...rest] = problemsOf(text(`{ ${upstream} }`), {}, FILES)
    t.equal(first.startsWith(at), true, first)
    t.equal(first.replace(/^.*?upstreams\.cloud/, ''), problem, upstream)
    t.same(rest, [], upstream)
  }
  t.end()
})

void t.test('an anthropic-version among the headers replaces the version', (t) => {
  const one = load(
    '{ dialect: anthropic, base_url: https://api.anthropic.com/v1, headers: { Anthropic-Version: 2023-06-01, x-team: a } }',
  )
  t.equal(one.anthropicVersion, '2023-06-01')
  t.same(one.headers, { 'x-team': 'a' })
  t.end()
})

void t.test('secrets of identities are masked, names are shown', (t) => {
  const loaded = loadText(
    text(
      '{ platform: bedrock, dialect: converse, region: us-east-1, auth: { aws: { access_key_id: AKIAEXAMPLE1, secret_access_key: verysecret1, session_token: sessiontoken1 } } }',
    ),
  )
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.errors))
  const { config } = loaded
  const shown = JSON.stringify(shownConfig(config))
  t.notMatch(shown, /verysecret1|sessiontoken1/)
  t.match(secretsOf(config), ['verysecret1', 'sessiontoken1'])
  t.end()
})

void t.test('the version of the dated addresses is no secret', (t) => {
  const loaded = loadText(
    text(
      '{ platform: azure, dialect: openai, base_url: https://a.openai.azure.com, api_version: 2024-10-21, query: { code: secret-code }, api_key: k }',
    ),
  )
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.errors))
  t.same(secretsOf(loaded.config), ['secret-code', 'k'])
  t.end()
})
