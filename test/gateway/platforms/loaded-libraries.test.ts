/**
 * Goal: the libraries of the clouds are loaded when a configuration names an identity, before the first
 * request, and never without one.
 * Method: Node's list of loaded modules of this process, which imports none of them itself.
 */
import { createRequire } from 'node:module'
import t from 'tap'
import { startGateway } from '../../helpers/gateway.js'
import { until } from '../../helpers/upstream.js'

const { cache } = createRequire(import.meta.url)

function loaded(): string[] {
  const libraries = ['@aws-sdk', '@smithy', '@azure', 'google-auth-library']
  return libraries.filter((name) => Object.keys(cache).some((path) => path.includes(`node_modules/${name}/`)))
}

const BEDROCK = 'platform: bedrock, dialect: converse, region: eu-west-1, base_url: http://127.0.0.1:1'

process.env['GCE_METADATA_HOST'] = '127.0.0.1:1'
process.env['AWS_EC2_METADATA_DISABLED'] = 'true'

void t.test('libraries of clouds are loaded only for identities that need them', async (t) => {
  await startGateway(t)
  t.same(loaded(), [], 'without a platform')
  await startGateway(t, { cloud: `${BEDROCK}, api_key: k` })
  t.same(loaded(), [], 'with an API key')
  const keys = '{ access_key_id: AKIDEXAMPLE, secret_access_key: example-secret }'
  await startGateway(t, { cloud: `${BEDROCK}, auth: { aws: ${keys} }` })
  t.same(loaded(), [], 'with keys in the file')
  await startGateway(t, { cloud: `${BEDROCK}, auth: { aws: { profile: none } }` })
  await until(() => loaded().includes('@aws-sdk'))
  t.notOk(loaded().includes('@azure'))
  t.notOk(loaded().includes('google-auth-library'))
  // The others are found in the same way, so that their absence above means something.
  const vertex =
    'platform: vertex, dialect: gemini, project: p, location: global, base_url: http://127.0.0.1:1'
  await startGateway(t, { cloud: `${vertex}, auth: { google: default }` })
  await until(() => loaded().includes('google-auth-library'))
  t.notOk(loaded().includes('@azure'))
  const entra = '{ tenant_id: tenant, client_id: client, client_secret: some-secret }'
  const azure = 'platform: azure, dialect: openai, base_url: http://127.0.0.1:1'
  process.env['AZURE_AUTHORITY_HOST'] = 'https://127.0.0.1:1'
  t.teardown(() => Reflect.deleteProperty(process.env, 'AZURE_AUTHORITY_HOST'))
  await startGateway(t, { cloud: `${azure}, auth: { azure: ${entra} }` })
  await until(() => loaded().includes('@azure'))
})
