/**
 * Goal: requests that the configuration names are recorded, encrypted, for their owners alone, and can be
 * read, sent again and replayed.
 * Method: a gateway in this process before an emulated provider; the commands run in this process, too.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:https'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { json as readJson } from 'node:stream/consumers'
import t from 'tap'
import { Agent, getGlobalDispatcher, setGlobalDispatcher } from 'undici'
import { Cassettes } from '../../src/emulator/cassettes.js'
import { startEmulator } from '../../src/emulator/server.js'
import { arrayOf, objectOf, stringOf, type JsonObject } from '../../src/base/json.js'
import { COMMANDS } from '../../src/cli/commands.js'
import { processTerminal } from '../../src/cli/with-store.js'
import { openStore } from '../../src/store/open-store.js'
import { exitStatus } from '../cli/session.js'
import { newAuthority, newPair } from '../helpers/certificates.js'
import { startGateway, type TestGateway } from '../helpers/gateway.js'
import { rowsOf } from '../helpers/ledger.js'
import { until } from '../helpers/redis.js'

const KEY = 'escrow: { key: 0f4c9b1e7d2a85c36f10e9d8b7a6c5f4 }\n'
const PROMPT = 'The secret plan of the fox.'

function settings(record: string, more = KEY) {
  return { more: `${more}record: ${record}\n` }
}

async function ask(gateway: TestGateway, more: object = {}): Promise<string> {
  const body = { model: 'gpt-4o-mini', messages: [{ role: 'user', content: PROMPT }], ...more }
  const response = await gateway.chat(body)
  await response.text().catch(() => '')
  return response.headers.get('x-request-id') ?? ''
}

async function idsOf(gateway: TestGateway): Promise<string[]> {
  const store = await openStore(gateway.store)
  const heads = await store.sealedRecords.list('recording', {}, Date.now())
  await store.close()
  return heads.map(({ id }) => id)
}

/** Runs a command of the program. */
async function sluice([name = '', ...args]: readonly string[]) {
  const lines: string[] = []
  processTerminal.out = (line) => void lines.push(line)
  processTerminal.ready = () => Promise.resolve()
  processTerminal.err = (line) => void lines.push(line)
  const command = await COMMANDS[name]?.()
  const status = command === undefined ? undefined : await exitStatus(command, args)
  return { status, out: lines.join('\n') }
}

async function json(args: readonly string[]): Promise<unknown> {
  const { out, status } = await sluice(args)
  if (status !== 0) throw new Error(`${status}: ${out}`)
  return JSON.parse(out)
}

await t.test('a recording has both sides, and commands read it', async (t) => {
  const gateway = await startGateway(t, settings('{ sample: 1 }'))
  const config = ['--config', gateway.configFile]
  const store = await openStore(gateway.store)
  t.teardown(() => store.close())
  const owner = { accountId: 'a', keyId: 'k', model: 'm' }
  const times = { atMs: Date.now() - 1_000, expiresAtMs: Date.now() }
  const ended = { kind: 'recording', id: 'ended', ...owner, ...times, info: '{}' } as const
  await store.sealedRecords.put({ ...ended, value: new Uint8Array(9) }, 1e9, Date.now())
  const whole = await ask(gateway)
  const streamed = await ask(gateway, { stream: true, model: 'claude-haiku-4-5', max_tokens: 99 })
  await until(async () => (await idsOf(gateway)).length === 2, 'both are stored')
  const rows = await rowsOf(gateway)
  t.same(
    rows.map(({ recorded }) => recorded),
    [true, true],
  )
  const folder = dirname(gateway.store.slice('sqlite:'.length))
  const files = readdirSync(folder).filter((name) => name.startsWith('sluice.db'))
  t.ok(
    files.every((name) => !readFileSync(join(folder, name)).includes('secret plan')),
    'sealed',
  )
  const list = arrayOf(await json(['recordings', 'list', '--json', ...config])).map(objectOf)
  t.same(
    list.map(({ id }) => id),
    [streamed, whole],
  )
  t.match(list[1], { model: 'gpt-4o-mini', upstream: 'openai', status: 200, bytes: Number })
  t.same(await json(['recordings', 'list', '--json', '--since', '2030-01-01', ...config]), [])
  const [head, first] = (await sluice(['recordings', 'list', ...config])).out.split('\n')
  t.match(head, /^REQUEST +RECORDED +ACCOUNT +MODEL +UPSTREAM +STATUS +SIZE$/)
  t.match(first, /^\S+ +20\d\d-\S+Z +\S+ +\S+ +\S+ +200 +\d+\.\d kB$/)
  t.match(await sluice(['recordings', 'list', '--since', '2030-01-01', ...config]), {
    status: 0,
    out: 'There are no recordings.',
  })
  const shown = objectOf(await json(['recordings', 'show', streamed, '--json', ...config]))
  t.same(Object.keys(shown), ['id', 'request', 'reply', 'client', 'upstream'])
  t.match(shown, {
    id: streamed,
    request: { messages: [{ role: 'user', parts: [{ text: PROMPT }] }] },
    reply: { blocks: [{ type: 'text', text: /emulated reply/ }], reason: 'stop' },
    client: {
      request: { method: 'POST', path: '/v1/chat/completions' },
      response: { status: 200 },
    },
    upstream: { request: { method: 'POST', path: '/anthropic/v1/messages' } },
  })
  const text = JSON.stringify(shown)
  t.notMatch(text, gateway.secret)
  t.notMatch(text, /"(?:authorization|x-api-key|cookie)"/)
  t.match(textOf(shown, 'client'), /data: \[DONE\]/)
  t.match(textOf(shown, 'upstream'), /message_stop/)
  const plain = objectOf(await json(['recordings', 'show', whole, '--json', ...config]))
  t.match(plain['reply'], { blocks: [{ type: 'text', text: /emulated reply/ }] })

  const replay = objectOf(await json(['replay', whole, '--upstream', 'openai', '--json', ...config]))
  t.match(replay, { id: whole, same_text: true, original: { status: 200, upstream: 'openai' } })
  t.match(replay['replay'], { status: 200, model: /gpt-4o-mini/, text: /emulated/, tools: [] })
  const { out: compared } = await sluice(['replay', whole, '--upstream', 'openai', ...config])
  t.match(compared, /^ +ORIGINAL +REPLAY\nupstream +openai +openai\n/)
  t.match(compared, /^cost +\$0\.\d+ +\$0\.\d+$/m)
  t.match(compared, /^duration +\d+ ms +\d+ ms$/m)

  const to = mkdtempSync(join(tmpdir(), 'sluice-cassettes-'))
  t.equal((await sluice(['cassettes', 'export', '--to', to, ...config])).out, `Wrote 2 cassettes to ${to}.`)
  t.same(readdirSync(to).sort(), [`${whole}.json`, `${streamed}.json`].sort())
  const cassette = objectOf(JSON.parse(readFileSync(join(to, `${streamed}.json`), 'utf8')))
  t.match(cassette, { version: 1, id: streamed, request: { method: 'POST', body: Object } })
  const emulator = await startEmulator({ cassettes: new Cassettes(to), paceMs: 0 })
  t.teardown(() => emulator.close())
  const { request } = cassette
  const { path, body } = objectOf(request)
  const send = (content: unknown) =>
    fetch(emulator.origin + (stringOf(path) ?? ''), {
      method: 'POST',
      body: JSON.stringify(content),
    })
  const again = await send(body)
  t.equal(again.status, 200)
  // The key of the test's upstream is `emulated`.
  const bytes = textOf(shown, 'upstream').replaceAll('emulated', '[redacted]')
  t.equal(await again.text(), bytes, 'the same bytes without secrets')
  t.equal((await send({ ...objectOf(body), max_tokens: 1 })).status, 404)

  const otherFile = join(dirname(gateway.configFile), 'other-key.yaml')
  const ownText = readFileSync(gateway.configFile, 'utf8')
  writeFileSync(otherFile, ownText.replace(KEY, KEY.replace('0f4c', '1f4c')))
  const sealed = await sluice(['recordings', 'show', whole, '--config', otherFile])
  t.match(sealed, { status: 1, out: /cannot be opened: another escrow\.key has sealed it/ })
  t.equal((await sluice(['recordings', 'delete', whole, ...config])).status, 0)
  t.equal((await sluice(['recordings', 'delete', whole, ...config])).status, 1)
  t.equal((await sluice(['recordings', 'show', whole, '--json', ...config])).status, 1)
  const audit = await sluice(['audit', 'export', '--format', 'jsonl', ...config])
  t.match(audit.out, `"action":"recording.read"`)
  // Those whose time has passed are in this list, too.
  await until(async () => {
    const stored = await store.sealedRecords.list('recording', {}, 0)
    return !stored.some(({ id }) => id === 'ended')
  }, 'the store has nothing whose time has passed')
})

function textOf(shown: JsonObject, side: 'client' | 'upstream'): string {
  const { response } = objectOf(shown[side])
  return arrayOf(objectOf(response)['chunks'])
    .map((chunk) => stringOf(objectOf(chunk)['data']) ?? '')
    .join('')
}

await t.test('only the requests that the settings name are recorded', async (t) => {
  const gateway = await startGateway(t, settings('{ sample: 1 }'))
  const file = readFileSync(gateway.configFile, 'utf8')
  const recorded = async (record: string, model = 'gpt-4o-mini', content = PROMPT) => {
    writeFileSync(gateway.configFile, file.replace('record: { sample: 1 }', `record: ${record}`))
    gateway.reload()
    const id = await ask(gateway, { model, messages: [{ role: 'user', content }] })
    const entry = (await rowsOf(gateway)).find(({ requestId }) => requestId === id)
    if (entry?.recorded === true) {
      await until(async () => (await idsOf(gateway)).includes(id), 'it is stored')
    }
    return entry?.recorded ?? null
  }
  t.equal(await recorded('{ when: { models: [gpt-4o] } }'), null)
  t.equal(await recorded('{ when: { models: [gpt-4o-mini] } }'), true)
  t.equal(await recorded('{ when: { accounts: [Test@Example.com] } }'), true)
  const [entry] = await rowsOf(gateway)
  t.equal(await recorded(`{ when: { accounts: [${entry?.accountId ?? ''}] } }`), true, 'an id')
  t.equal(await recorded('{ when: { accounts: [other, test] } }'), true, 'a name')
  t.equal(await recorded('{ when: { accounts: [other@example.com, other] } }'), null)
  t.equal(await recorded("{ when: { labels: { debug: 'true' } } }"), null)
  t.equal(await recorded('{ sample: 0 }'), null)
  t.equal(await recorded('{ when: { errors: true } }'), null)
  const failing = '[[fault:status code=400]] Fails.'
  t.equal(await recorded('{ when: { errors: true } }', 'gpt-4o-mini', failing), true)
  t.equal(await recorded('{ sample: 1, max_bytes: 1024 }', 'gpt-4o-mini', 'x'.repeat(2_000)), null)
})

await t.test('files, expiry and settings that are refused', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-recordings-'))
  // Of a process that was killed while it wrote, and of one that writes.
  const [killed, writing] = ['a.recording.new', 'b.recording.new']
  for (const name of [killed, writing]) writeFileSync(join(folder, name), '')
  utimesSync(join(folder, killed), 0, Date.now() / 1000 - 61)
  // About two seconds.
  const gateway = await startGateway(t, settings(`{ sample: 1, keep_days: 0.00003, to: 'file:${folder}' }`))
  const id = await ask(gateway)
  await until(() => Promise.resolve(readdirSync(folder).includes(`${id}.recording`)), 'a file')
  t.notOk(readFileSync(join(folder, `${id}.recording`)).includes('secret plan'))
  const config = ['--config', gateway.configFile]
  t.match(await json(['recordings', 'list', '--json', ...config]), [{ id }])
  const isAlone = (): boolean => readdirSync(folder).join(' ') === writing
  await until(() => Promise.resolve(isAlone()), 'it is removed, and what the killed process left')
  for (const [record, more, problem] of [
    ['{}', KEY, /must have when .* or sample/],
    ['{ when: {} }', KEY, /must have when/],
    ['{ sample: 1 }', '', /needs escrow.key/],
    ['{ sample: 1, redact: [secrets] }', KEY, /redact\[0\].* is not a guardrail/],
    ["{ sample: 1, to: 'http://example.com' }", KEY, /must be store, file:DIR or an https URL/],
  ] as const) {
    await t.rejects(startGateway(t, settings(record, more)), { message: problem }, record)
  }
})

await t.test('recordings are sent to an https URL', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-receiver-'))
  const authority = newAuthority(folder, 'authority')
  const { cert, key } = newPair(folder, 'receiver', { authority })
  const received: { type: unknown; body: JsonObject }[] = []
  let status = 200
  const options = { cert: readFileSync(cert), key: readFileSync(key) }
  const receiver = createServer(options, (req, res) => {
    void readJson(req).then((body) => {
      received.push({ type: req.headers['content-type'], body: objectOf(body) })
      res.writeHead(status).end()
    })
  })
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
  const before = getGlobalDispatcher()
  setGlobalDispatcher(new Agent({ connect: { ca: readFileSync(authority.cert) } }))
  t.teardown(() => {
    setGlobalDispatcher(before)
    receiver.closeAllConnections()
    receiver.close()
  })
  const address = receiver.address()
  const port = typeof address === 'object' ? address?.port : 0
  const to = `'https://127.0.0.1:${port}/recordings'`
  const gateway = await startGateway(t, settings(`{ sample: 1, to: ${to} }`))
  const id = await ask(gateway)
  await until(() => Promise.resolve(received.length === 1), 'it is received')
  t.match(received[0], { type: 'application/json', body: { id, account_id: String, at: String } })
  const { request, reply, client, upstream } = received[0]?.body ?? {}
  t.match(JSON.stringify(request), PROMPT)
  t.match(JSON.stringify(reply), 'emulated reply')
  t.match(client, { request: { method: 'POST' }, response: { status: 200 } })
  t.match(upstream, { response: { status: 200 } })
  t.notMatch(JSON.stringify(received[0]?.body), gateway.secret)
  t.same(await idsOf(gateway), [], 'the store has none')
  const entry = (await rowsOf(gateway)).find(({ requestId }) => requestId === id)
  t.equal(entry?.recorded, true)
  status = 500
  await ask(gateway)
  const failed = (): boolean => gateway.lines.some(({ msg }) => msg === 'recording failed')
  await until(() => Promise.resolve(failed()), 'the failure is logged')
})

await t.test('redact masks the texts of both sides', async (t) => {
  const more = `${KEY}guardrails: { words: { patterns: ['secret plan'], action: mask } }\n`
  const gateway = await startGateway(t, settings('{ sample: 1, redact: [words] }', more))
  for (const stream of [true, false]) {
    const id = await ask(gateway, { stream })
    await until(async () => (await idsOf(gateway)).includes(id), 'it is stored')
    const { out } = await sluice(['recordings', 'show', id, '--json', '--config', gateway.configFile])
    t.notMatch(out, /secret plan/)
    t.match(out, /The \[words\] of the fox/)
    const bytes = stream ? '[redacted]' : /The \[words\] of the fox/
    t.match(JSON.parse(out), { client: { response: { chunks: [{ data: bytes }] } } })
    const to = mkdtempSync(join(tmpdir(), 'sluice-cassettes-'))
    t.teardown(() => rmSync(to, { recursive: true }))
    const exported = await sluice([
      ...['cassettes', 'export', '--id', id, '--to', to, '--config', gateway.configFile],
    ])
    t.match(
      exported.out,
      stream
        ? new RegExp(`The reply of ${id} is redacted.*\\nWrote 0 cassettes to`)
        : /^Wrote 1 cassette to /,
    )
    t.equal(readdirSync(to).length, stream ? 0 : 1)
    const file = join(to, 'redacted.json')
    const { upstream } = objectOf(JSON.parse(out))
    writeFileSync(file, JSON.stringify({ version: 1, id, ...objectOf(upstream) }))
    if (stream) t.throws(() => new Cassettes(file), /redacted\.json has a redacted reply/)
    else t.equal(new Cassettes(file).size, 1)
  }
})

await t.test('redact masks headers, the query and escaped arguments', async (t) => {
  const more = `${KEY}guardrails: { words: { patterns: ['secret plan', '4711471147'], action: mask } }\n`
  const gateway = await startGateway(t, settings('{ sample: 1, redact: [words] }', more))
  const call = { name: 'f', arguments: '{"note":"secret\\u0020plan","card":4711471147}' }
  const messages = [
    { role: 'user', content: 'Hi' },
    { role: 'assistant', content: null, tool_calls: [{ id: 'c1', type: 'function', function: call }] },
    { role: 'tool', tool_call_id: 'c1', content: 'done' },
  ]
  const response = await fetch(`${gateway.baseUrl}/chat/completions?note=secret%20plan&more=secret+plan`, {
    method: 'POST',
    headers: {
      ...{ authorization: `Bearer ${gateway.secret}`, 'content-type': 'application/json' },
      'x-note': 'the secret plan',
    },
    body: JSON.stringify({ model: 'gpt-4o-mini', messages }),
  })
  t.equal(response.status, 200)
  const id = response.headers.get('x-request-id') ?? ''
  await until(async () => (await idsOf(gateway)).includes(id), 'it is stored')
  const { out } = await sluice(['recordings', 'show', id, '--json', '--config', gateway.configFile])
  const plain = out.replaceAll(/%20|\\*u0020|\+/g, ' ')
  t.notMatch(plain, /secret plan/)
  t.notMatch(plain, /4711471147/)
  t.match(JSON.parse(out), { client: { request: { headers: { 'x-note': 'the [words]' } } } })
})

await t.test('a recording has the values of dimensions', async (t) => {
  const more = `${KEY}dimensions: [{ name: end_user, from: [body:user] }]\n`
  const gateway = await startGateway(t, settings('{ sample: 1 }', more))
  const id = await ask(gateway, { user: 'Ada L' })
  await until(async () => (await idsOf(gateway)).length === 1, 'it is stored')
  const shown = await json(['recordings', 'show', id, '--json', '--config', gateway.configFile])
  t.match(shown, { id, dimensions: 'end_user=Ada%20L' })
})
