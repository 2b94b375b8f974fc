/**
 * Goal: plugins judge, route and observe as documented; their errors decide nothing by accident; and a file
 * that does not load refuses a new generation.
 */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import t from 'tap'
import { definePlugin } from '../../src/policy/plugin-interface.js'
import { startGateway } from '../helpers/gateway.js'
import { until } from '../helpers/upstream.js'
import { CLIENT_FORMATS, startScene } from './guarded-gateway.js'
import { startProvider } from './provider.js'

const PLUGIN = `
const seen = []
export default {
  api: 1,
  name: 'acme',
  guardrails: {
    lunch: { judge(part, ctx) {
      if (!Object.isFrozen(part) || !Object.isFrozen(ctx)) throw new Error('not frozen')
      if (part.text.includes('pizza')) return { block: 'Not now.' }
      if (part.text.includes('soup')) return { mask: part.text.replaceAll('soup', '****') }
      if (part.text.includes('tea')) return { report: 'tea' }
    } },
    broken: { async judge(part) {
      if (part.text.includes('throw')) throw new Error(part.text)
      if (part.text.includes('late')) await new Promise((resolve) => setTimeout(resolve, 2000))
      if (part.text.includes('shape')) return { ok: true }
      return undefined
    } },
  },
  conditions: {
    long: (request) => request.messages[0].parts[0].text.length > 100,
    bad: () => { throw new Error('no') },
    wrong: () => 'yes',
    slow: () => {
      const began = performance.now()
      while (performance.now() - began < 10);
      return true
    },
  },
  observers: {
    audit: {
      request(request, ctx) { seen.push({ hook: 'request', model: request.model, label: ctx.labels.team }) },
      event(event) { seen.push({ hook: 'event', ...event }) },
      end(summary, ctx) { seen.push({ hook: 'end', ...summary }); ctx.log(JSON.stringify(seen.splice(0))) },
    },
    broken: { request() { throw new Error('no') } },
  },
}
`

function pluginIn(folder: string, text: string): string {
  mkdirSync(folder, { recursive: true })
  const path = join(folder, 'acme.js')
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  writeFileSync(path, text)
  return path
}

void t.test('guardrails, conditions and observers', async (t) => {
  const path = pluginIn(t.testdir(), PLUGIN)
  const provider = await startProvider(t)
  const gateway = await startGateway(t, {
    upstreams: { openai: `${provider.origin}/v1` },
    more: `plugins: ['${path}']
guardrails:
  lunch: { plugin: acme.lunch, apply_to: { all: true }, timeout_ms: 1000 }
  broken: { plugin: acme.broken, apply_to: { all: true }, on: [request], on_error: open, timeout_ms: 100 }
`,
    routes: `  - { prefix: m-, when: { plugin: acme.bad }, upstream: anthropic }
  - { prefix: m-, when: { plugin: acme.wrong }, upstream: anthropic }
  - { prefix: m-, when: { plugin: acme.slow }, upstream: anthropic }
  - { prefix: m-, when: { plugin: acme.long }, upstream: google }
  - { prefix: m-, upstream: openai }`,
  })
  const ask = (content: string, model = 'm-1'): Promise<Response> =>
    gateway.chat({ model, messages: [{ role: 'user', content }] })

  const blocked = await ask('pizza?')
  t.equal(blocked.status, 400)
  t.match(await blocked.json(), {
    error: { message: "Blocked by the guardrail 'lunch'. Not now." },
  })
  provider.reply = { text: 'A soup. ' }
  const masked = await ask('soup')
  t.match(JSON.stringify(provider.bodies.at(-1)), /\*\*\*\*/)
  t.match(await masked.json(), { choices: [{ message: { content: 'A ****. ' } }] })
  const reported = await ask('tea')
  t.match(reported.headers.get('x-sluice-guardrails'), /lunch:report/)
  for (const failure of ['throw', 'late', 'shape']) {
    const open = await ask(failure)
    t.equal(open.status, 200, failure)
    t.match(open.headers.get('x-sluice-guardrails'), /broken:error/)
  }
  t.equal((await ask('x'.repeat(200))).headers.get('x-sluice-upstream'), 'google')
  t.equal((await ask('short')).headers.get('x-sluice-upstream'), 'openai')
  await until(() => gateway.lines.some(({ reason }) => String(reason).includes('"text"')))
  const line = gateway.lines.find(({ reason }) => String(reason).includes('****'))
  t.match(
    String(line?.['reason']),
    /^\[\{"hook":"request","model":"m-1".*"type":"start".*"type":"text","text":"A \*\*\*\*\. "/,
  )
  const text = await gateway.metrics.text()
  t.match(text, /sluice_plugin_errors_total\{plugin="acme",hook="guardrails\.broken"\} 3/)
  t.match(text, /sluice_plugin_errors_total\{plugin="acme",hook="conditions\.bad"\} \d+/)
  t.match(text, /sluice_plugin_errors_total\{plugin="acme",hook="conditions\.wrong"\} \d+/)
  t.match(text, /sluice_plugin_errors_total\{plugin="acme",hook="conditions\.slow"\} \d+/)
  t.match(text, /sluice_plugin_errors_total\{plugin="acme",hook="observers\.broken"\} \d+/)
})

void t.test('a changed plugin is a new generation, and a broken one is refused', async (t) => {
  const path = pluginIn(t.testdir(), PLUGIN)
  const { gateway, ask } = await startScene(
    t,
    `  lunch: { plugin: acme.lunch, apply_to: { all: true }, timeout_ms: 1000 }`,
    `plugins: ['${path}']`,
  )
  t.equal((await ask('chat', 'gpt-5.4', { text: 'pizza' })).status, 400)
  writeFileSync(path, PLUGIN.replace('pizza', 'pasta'))
  t.equal(await gateway.plane.tryOut(gateway.load()), null)
  gateway.reload()
  for (const format of CLIENT_FORMATS) {
    t.equal((await ask(format, 'gpt-5.4', { text: 'pasta' })).status, 400)
    t.equal((await ask(format, 'gpt-5.4', { text: 'pizza' })).status, 200)
  }
  const broken: readonly [string, RegExp][] = [
    ['export default {\n  api: 1,\n  name: acme,\n}', /acme\.js:3: ReferenceError/],
    ['export default {\n  api: 1,,\n}', /acme\.js:2: SyntaxError/],
    ['\nexport default { api: 2, name: "acme" }', /acme\.js:2: api must be 1/],
    [
      'export default { api: 1, name: "acme" }',
      /guardrails\.lunch\.plugin: the plugin "acme" has no "lunch"/,
    ],
  ]
  for (const [text, reason] of broken) {
    writeFileSync(path, text)
    const problem = await gateway.plane.tryOut(gateway.load())
    t.match(problem, reason)
  }
  // Node takes a file outside of a package of modules for a script.
  rmSync(join(dirname(path), 'package.json'))
  writeFileSync(path, 'import "node:fs"\n\nexport default {\n  api: {{ }\n}')
  t.match(await gateway.plane.tryOut(gateway.load()), /acme\.js:4: SyntaxError/)
})

void t.test('a changed import of a plugin is a new generation, too', async (t) => {
  const folder = t.testdir()
  const path = pluginIn(
    folder,
    `import { words } from './lib/words.js'\n${PLUGIN.replace("'pizza'", 'words[0]')}`,
  )
  const lib = join(folder, 'lib')
  mkdirSync(lib)
  const list = (word: string): string => `export const list = ['${word}']\n`
  writeFileSync(join(lib, 'words.js'), "export { list as words } from '../list.js'\n")
  writeFileSync(join(folder, 'list.js'), list('rice'))
  const { gateway, ask } = await startScene(
    t,
    `  lunch: { plugin: acme.lunch, apply_to: { all: true }, timeout_ms: 1000 }`,
    `plugins: ['${path}']`,
  )
  t.equal((await ask('chat', 'gpt-5.4', { text: 'rice' })).status, 400)
  writeFileSync(join(folder, 'list.js'), list('beans'))
  const { config } = gateway.load()
  t.same(config.plugins[0]?.files, [path, join(lib, 'words.js'), join(folder, 'list.js')])
  t.equal(await gateway.plane.tryOut(gateway.load()), null)
  gateway.reload()
  t.equal((await ask('chat', 'gpt-5.4', { text: 'beans' })).status, 400)
  t.equal((await ask('chat', 'gpt-5.4', { text: 'rice' })).status, 200)
  writeFileSync(join(folder, 'list.js'), '\nexport const list = missing\n')
  t.match(await gateway.plane.tryOut(gateway.load()), /list\.js:2: ReferenceError/)
  writeFileSync(join(folder, 'list.js'), '\n\nexport const list = [,,\n')
  t.match(await gateway.plane.tryOut(gateway.load()), /list\.js:\d: SyntaxError/)
})

void t.test('the examples load and work', async (t) => {
  const files = ['office-hours', 'word-count'].map((name) => resolve(`examples/plugins/${name}.mjs`))
  const { gateway, provider, ask } = await startScene(
    t,
    `  names: { plugin: office.project_names, apply_to: { all: true }, timeout_ms: 1000 }`,
    `plugins: ${JSON.stringify(files)}`,
  )
  provider.reply = { text: 'Nightjar is late.' }
  t.equal((await ask('messages', 'gpt-5.4', { stream: true })).text, '[project] is late.')
  t.equal((await ask('chat', 'gpt-5.4', { text: 'The launch date of Blue Heron?' })).status, 400)
  await until(() => gateway.lines.some(({ reason }) => String(reason).startsWith('ok: 3 words, 0 calls')))
  t.equal(definePlugin({ api: 1, name: 'x' }).name, 'x')
})
