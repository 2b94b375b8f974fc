/**
 * Goal: what is not configured costs nothing: the modules of recordings, of the cache and of its marks, and
 * those of dimensions, sign-ins of programs and WebSockets are loaded by what needs them first.
 * Method: the scripts that V8 has compiled in this process, which imports none of them itself; each is a
 * bundle, whose map names its sources.
 */
import { readFileSync } from 'node:fs'
import { Session, type Debugger } from 'node:inspector'
import t from 'tap'
import * as z from 'zod'
import { startGateway } from '../helpers/gateway.js'

const MODULES = [
  'gateway/recording/record-requests',
  'policy/encrypted-recordings',
  'gateway/cache/answer-from-cache',
  'policy/prompt-cache-marks',
]
/** What tells requests apart below a key, signs programs in, and serves WebSockets. */
const BELOW_THE_KEY = [
  'gateway/dimensions/live-values',
  'gateway/dimensions/read-dimensions',
  'gateway/phases/read-values',
  'accounts/logins/logins',
  'accounts/logins/device-codes',
  'control/login/login-endpoints',
  'control/dashboard/own-usage',
  'gateway/responses-socket/responses-sockets',
]

const SourceMap = z.looseObject({ sources: z.array(z.string()) })
const sources = new Set<string>()
const session = new Session()
session.connect()
session.on('Debugger.scriptParsed', ({ params }: { params: Debugger.ScriptParsedEventDataType }) => {
  const { url, sourceMapURL = '' } = params
  if (!url.includes('/build/src/') || sourceMapURL === '') return
  const map: unknown = JSON.parse(readFileSync(new URL(sourceMapURL, url), 'utf8'))
  for (const source of SourceMap.parse(map).sources) sources.add(source)
})
session.post('Debugger.enable')
t.teardown(() => session.disconnect())

function loaded(names = MODULES): string[] {
  return names.filter((name) => [...sources].some((path) => path.endsWith(`/src/${name}.ts`)))
}

await t.test('modules of the policy are loaded when they are needed', async (t) => {
  t.ok(
    [...sources].some((path) => path.endsWith('/src/gateway/pipeline.ts')),
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
  t.same([...loaded(), ...loaded(BELOW_THE_KEY)], [])
  const target = 'targets: [{ upstream: openai, model: gpt-4o-mini }]'
  await ask('', `  - { model: gpt-4o-mini, ${target}, cache: {} }`)
  t.same(loaded(), ['gateway/cache/answer-from-cache'])
  await ask('', `  - { model: gpt-4o-mini, ${target}, cache_control: auto }`)
  t.same(loaded(), ['gateway/cache/answer-from-cache', 'policy/prompt-cache-marks'])
  await ask('escrow: { key: 0f4c9b1e7d2a85c36f10e9d8b7a6c5f4 }\nrecord: { sample: 1 }')
  t.same(loaded(), MODULES)
  t.same(loaded(BELOW_THE_KEY), [])
  await ask('dimensions: [{ name: run, from: [header:x-run-id] }]')
  t.same(loaded(BELOW_THE_KEY), BELOW_THE_KEY.slice(0, 3))
})
