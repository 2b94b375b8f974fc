/**
 * Goal: what is not configured costs nothing: the modules of recordings, of the cache and of its marks are
 * loaded by the first configuration that needs them.
 * Method: the scripts that V8 has compiled in this process, which imports none of them itself.
 */
import { Session, type Debugger } from 'node:inspector'
import t from 'tap'
import { startGateway } from '../helpers/gateway.js'

const MODULES = [
  'gateway/recording/record-requests',
  'policy/encrypted-recordings',
  'gateway/cache/answer-from-cache',
  'policy/prompt-cache-marks',
]

const scripts = new Set<string>()
const session = new Session()
session.connect()
session.on('Debugger.scriptParsed', ({ params }: { params: Debugger.ScriptParsedEventDataType }) =>
  scripts.add(params.url),
)
session.post('Debugger.enable')
t.teardown(() => session.disconnect())

function loaded(): string[] {
  return MODULES.filter((name) => [...scripts].some((url) => url.endsWith(`/src/${name}.js`)))
}

await t.test('modules of the policy are loaded when they are needed', async (t) => {
  t.ok(
    [...scripts].some((url) => url.endsWith('/src/gateway/pipeline.js')),
    'scripts are seen',
  )
  const ask = async (more: string, routes = ''): Promise<Record<string, unknown>> => {
    const gateway = await startGateway(t, { more, routes })
    const body = { model: 'gpt-4o-mini', messages: [{ role: 'user', content: 'Hello.' }] }
    const response = await gateway.chat(body)
    t.equal(response.status, 200)
    await response.text()
    return gateway.lines.at(-1) ?? {}
  }
  await ask('')
  t.same(loaded(), [])
  const target = 'targets: [{ upstream: openai, model: gpt-4o-mini }]'
  await ask('', `  - { model: gpt-4o-mini, ${target}, cache: {} }`)
  t.same(loaded(), ['gateway/cache/answer-from-cache'])
  await ask('', `  - { model: gpt-4o-mini, ${target}, cache_control: auto }`)
  t.same(loaded(), ['gateway/cache/answer-from-cache', 'policy/prompt-cache-marks'])
  await ask('escrow: { key: 0f4c9b1e7d2a85c36f10e9d8b7a6c5f4 }\nrecord: { sample: 1 }')
  t.same(loaded(), MODULES)
})
