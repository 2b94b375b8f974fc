/**
 * Goal: `sluice plan` prints the effect of a new file on the requests that the running gateway has served:
 * their upstreams, the keys that lose a model, translation losses and costs. It exits with 1 if requests
 * would fail.
 * Method: the built program with two workers and requests of two client formats; then the command in this
 * process, and for its text as an operator runs it.
 */
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { isObject, objectOf, type JsonObject } from '../../../src/base/json.js'
import { freePort } from '../../helpers/free-port.js'
import { fileText, startServe, until } from '../../process/program.js'
import { sluice, sluiceHere } from '../session.js'

const opsPort = await freePort()
const served = await startServe(t, { opsPort })
const folder = join(served.file, '..')
const SECRET_WORDS = 'the rain in Spain'

/** Writes a file with other routes next to the gateway's. Returns its path. */
function newFile(name: string, routes: readonly string[], more = ''): string {
  const path = join(folder, name)
  const [head = ''] = fileText(served.emulator, { opsPort }).split('routes:\n')
  writeFileSync(path, `${head}routes:\n${routes.map((route) => `  - ${route}\n`).join('')}${more}`)
  return path
}

async function plan(file: string, ...options: string[]) {
  const config = ['--config', served.file]
  const ran = await sluiceHere(['plan', file, ...config, '--json', ...options])
  const output: unknown = ran.out === '' ? {} : JSON.parse(ran.out)
  return { ...ran, plan: objectOf(isObject(output) ? output : {}) }
}

async function ask(path: string, body: object): Promise<number> {
  const reply = await fetch(`http://127.0.0.1:${served.port}${path}`, {
    method: 'POST',
    headers: {
      'x-api-key': served.secret,
      'content-type': 'application/json',
      connection: 'close',
    },
    body: JSON.stringify(body),
  })
  await reply.text()
  return reply.status
}

const messages = [{ role: 'user', content: SECRET_WORDS }]
const statuses = new Set<number>()
for (let index = 0; index < 8; index += 1) {
  statuses.add(await ask('/v1/chat/completions', { model: 'gpt-5.4', messages, n: 2 }))
  const claude = { model: 'claude-opus-5-5', max_tokens: 200, top_k: 5, messages }
  statuses.add(await ask('/v1/messages', claude))
}
await until(async () => {
  const { text } = await served.ops('/recent-requests')
  return text.split('"atMs"').length === 17
})

void t.test('the ops port shows recent requests of all workers without their contents', async (t) => {
  t.same([...statuses], [200])
  const { status, text } = await served.ops('/recent-requests')
  t.equal(status, 200)
  t.notMatch(text, 'Spain')
  t.match(text, '"model":"gpt-5.4"')
  t.match(text, '"promptTokens"')
})

void t.test('the same file has no changes and exits with 0', async (t) => {
  const { status, plan: output } = await plan(served.file)
  t.equal(status, 0)
  t.match(output, { source: 'gateway', requests: 16, unmoved: 16, moves: [], breaks: [] })
})

void t.test('moves to another upstream are counted, with losses and costs', async (t) => {
  const file = newFile('moved.yaml', [
    '{ prefix: gpt-, upstream: openai }',
    '{ prefix: claude-, targets: [{ upstream: openai, model: gpt-5.4-mini }] }',
  ])
  const { status, plan: output, err } = await plan(file)
  t.equal(status, 0, err)
  t.match(output, {
    requests: 16,
    unmoved: 8,
    moves: [
      {
        model: 'claude-opus-5-5',
        from: { upstream: 'anthropic', model: 'claude-opus-5-5' },
        to: { upstream: 'openai', model: 'gpt-5.4-mini' },
        requests: 8,
      },
    ],
    lost: [{ model: 'claude-opus-5-5', format: 'messages', field: 'top_k', requests: 8 }],
    refused: [],
    keys: [],
    breaks: [],
  })
  const cost = objectOf(output['cost'])
  t.equal(cost['requests'], 16)
  t.ok(Number(cost['after_usd']) > 0 && Number(cost['difference_usd']) < 0, 'the mini model is cheaper')

  const text = await sluice(['plan', file, '--config', served.file])
  t.equal(text.status, 0)
  t.match(text.out, 'claude-opus-5-5: anthropic claude-opus-5-5 -> openai gpt-5.4-mini, 8 requests')
  t.match(text.out, 'Nothing breaks.')
})

void t.test('weights split the requests of a model', async (t) => {
  const file = newFile('split.yaml', [
    '{ prefix: gpt-, upstream: openai }',
    '{ prefix: claude-, targets: [{ upstream: anthropic, weight: 3 }, { upstream: openai, model: gpt-5.4, weight: 1 }] }',
  ])
  const { plan: output } = await plan(file)
  t.match(output['moves'], [{ model: 'claude-opus-5-5', to: { upstream: 'openai' }, requests: 2 }])
})

void t.test('a model without a route exits with 1 and lists the keys that lose it', async (t) => {
  const file = newFile('without.yaml', ['{ prefix: gpt-, upstream: openai }'])
  const { status, plan: output } = await plan(file)
  t.equal(status, 1)
  t.match(output['moves'], [{ model: 'claude-opus-5-5', to: null, requests: 8 }])
  t.match(output['keys'], [{ key_id: /^key_/, name: 'a key', model: 'claude-opus-5-5', requests: 8 }])
  t.match(JSON.stringify(output['breaks']), 'the model claude-opus-5-5 loses its route')
  const text = await sluice(['plan', file, '--config', served.file])
  t.equal(text.status, 1)
  t.match(text.out, /key_\w+ \(a key\) {2}claude-opus-5-5, 8 requests/)
})

void t.test('a request that the new upstream refuses exits with 1', async (t) => {
  const file = newFile('refusing.yaml', [
    '{ prefix: gpt-, targets: [{ upstream: anthropic, model: claude-opus-5-5 }] }',
    '{ prefix: claude-, upstream: anthropic }',
  ])
  const { status, plan: output } = await plan(file)
  t.equal(status, 1)
  t.match(output['refused'], [{ model: 'gpt-5.4', format: 'chat', field: 'n', requests: 8 }])
  t.match(JSON.stringify(output['breaks']), 'requests for gpt-5.4 cannot be sent to anthropic')
})

void t.test('on_loss: reject reports losses as refusals', async (t) => {
  const routes = [
    '{ prefix: gpt-, upstream: openai }',
    '{ prefix: claude-, targets: [{ upstream: openai, model: gpt-5.4 }] }',
  ]
  const { status, plan: output } = await plan(newFile('strict.yaml', routes, 'on_loss: reject\n'))
  t.equal(status, 1)
  t.match(output['refused'], [{ model: 'claude-opus-5-5', field: 'top_k' }])
})

void t.test('an invalid file is reported with its line', async (t) => {
  const file = newFile('bad.yaml', ['{ prefix: gpt-, upstream: nowhere }'])
  const { status, plan: output } = await plan(file)
  t.equal(status, 1)
  t.match(output['errors'], [{ path: 'routes[0].upstream' }])
})

void t.test('without a gateway the files are compared, and --live fails', async (t) => {
  const path = join(t.testdir(), 'idle')
  mkdirSync(path, { recursive: true })
  copyFileSync('config/models.yaml', join(path, 'models.yaml'))
  const [old, now] = [join(path, 'old.yaml'), join(path, 'new.yaml')]
  const idle = fileText(served.emulator, { opsPort: await freePort() })
  writeFileSync(old, idle)
  writeFileSync(
    now,
    idle.replace(
      'prefix: claude-, upstream: anthropic',
      'prefix: claude-, targets: [{ upstream: openai, model: gpt-4o }]',
    ),
  )

  const ran = await sluiceHere(['plan', now, '--config', old, '--json'])
  t.equal(ran.status, 0, ran.err)
  t.match(ran.err, /No gateway listens on http:\/\/127\.0\.0\.1:\d+/)
  const output = objectOf(JSON.parse(ran.out))
  t.match(output, { source: 'files', breaks: [], keys: [] })
  t.ok((output['moves'] as JsonObject[]).some(({ model }) => model === 'claude-opus-5-5'))
  t.match(output['capabilities'], [{ to_upstream: 'openai', dialect: 'openai-chat' }])

  const live = await sluiceHere(['plan', now, '--config', old, '--live'])
  t.equal(live.status, 1)
  t.match(live.err, 'Without --live the files alone are compared')

  const two = await sluiceHere(['plan', old, now, '--json'])
  t.equal(two.status, 0)
  t.equal(two.err, '', 'no gateway receives a request')
  t.equal(objectOf(JSON.parse(two.out))['source'], 'files')

  writeFileSync(now, idle.replace('  - { prefix: claude-, upstream: anthropic }\n', ''))
  t.equal((await sluiceHere(['plan', old, now])).status, 1, 'a listed model loses its route')
})

void t.test('wrong usage exits with 2', async (t) => {
  for (const args of [
    ['plan'],
    ['plan', 'a', 'b', 'c'],
    ['plan', 'a', 'b', '--live'],
    ['plan', 'a', 'b', '--config', 'c'],
  ]) {
    t.equal((await sluiceHere(args)).status, 2, args.join(' '))
  }
})
