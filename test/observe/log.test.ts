/**
 * Goal: log lines hold the named fields and nothing else: no secret, no prompt, no stray field.
 * Method: every value that a client controls contains a canary, at the level with the most output.
 */
import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { ERRORS, type ErrorKind, GatewayError } from '../../src/errors.js'
import { createLogger, type Logger, type LogLevel } from '../../src/observe/log.js'
import type { ExchangeLine } from '../../src/observe/log-fields.js'
import { hideSecrets } from '../../src/hide-secrets.js'

const EXCHANGE: ExchangeLine = {
  request_id: 'req_1',
  method: 'POST',
  path: '/v1/chat/completions',
  status: 200,
  outcome: 'ok',
  model: 'gpt-5.4',
  stream: true,
  duration_ms: 12.34567,
  overhead_ms: 0.5,
  input_tokens: 0,
}

function open(level: LogLevel): { log: Logger; text: () => string; lines: () => unknown[] } {
  let text = ''
  const log = createLogger({
    level,
    destination: {
      write: (line) => {
        text += line
      },
    },
  })
  const parse = (line: string): unknown => JSON.parse(line)
  return { log, text: () => text, lines: () => text.trimEnd().split('\n').map(parse) }
}

void t.test('an exchange is one line of named fields', (t) => {
  const { log, lines, text } = open('info')
  log.exchangeLine({ ...EXCHANGE, upstream: undefined, lost: 'seed,top_k' })
  log.exchangeLine({ ...EXCHANGE, status: 502, outcome: 'upstream_failed' })
  const { request_id, method, path, status, outcome, model, stream } = EXCHANGE
  t.match(lines()[0], {
    level: 'info',
    time: /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/,
    pid: process.pid,
    ...{ request_id, method, path, status, outcome, model, stream },
    duration_ms: 12.346,
    input_tokens: 0,
    lost: 'seed,top_k',
    msg: 'exchange',
  })
  t.notOk(text().includes('"upstream"'), 'what is absent is not written')
  t.match(lines()[1], { level: 'warn', outcome: 'upstream_failed' })
  t.equal(lines().length, 2)
  t.end()
})

void t.test("a client's strings are escaped, clipped, and lose their query", (t) => {
  const { log, lines } = open('info')
  const odd = 'a"b\\c\nd\u2028\ud800é'
  log.exchangeLine({
    ...EXCHANGE,
    path: '/v1/models/x?key=hidden#frag',
    model: odd,
    client_request_id: 'x'.repeat(5000),
    duration_ms: NaN,
  })
  t.match(lines()[0], {
    path: '/v1/models/x',
    model: odd,
    client_request_id: `${'x'.repeat(256)}…`,
    duration_ms: null,
  })
  t.end()
})

void t.test('a long path does not hide the advice at the end of a message', (t) => {
  const { log, lines } = open('info')
  const path = `/${'deep/'.repeat(800)}`
  const message = `The folder "${path}" is open: run chmod 700`
  log.warn('event', { reason: message })
  log.error('event', new Error(message))
  log.warn('event', { reason: `${'x'.repeat(500)} end` })
  const [first, second, third] = lines()
  const cut = `${message.slice(0, 256)}…${message.slice(-256)}`
  t.match(cut, /run chmod 700$/)
  t.match(first, { reason: cut })
  t.match(second, { error: { message: cut } })
  t.match(third, { reason: `${'x'.repeat(500)} end` }, 'two ends that meet are not cut')
  t.end()
})

void t.test('each line has its own values, even if earlier lines share some of them', (t) => {
  const { log, lines } = open('info')
  const given: ExchangeLine[] = []
  const names = [undefined, 'a', 'b', 'c"\\é', `sk_${'x'.repeat(44)}`]
  const numbers = [0, 7, 10, 99.5, 100, 1234.0625, 0.001, 0.0004, 0.1, 12.34, 999_999_999.5, 1e9, 2 ** 53]
  for (let round = 0; round < 2_000; round += 1) {
    const name = (step: number): string | undefined => names[Math.floor(round / step) % names.length]
    const number = (step: number): number => numbers[(round * step) % numbers.length] ?? 0
    given.push({
      ...EXCHANGE,
      status: 200 + (round % 7),
      path: `/v1/models/${name(9) ?? ''}`,
      key_id: `key_${round % 300}`,
      account_id: `acc_${round % 11}`,
      route: name(2),
      upstream: name(5),
      model: name(1),
      upstream_model: name(4),
      stream: round % 3 === 0,
      finish_reason: round % 2 === 0 ? 'stop' : undefined,
      duration_ms: number(1),
      overhead_ms: -number(3),
      bytes_in: number(5),
    })
  }
  for (const line of given) log.exchangeLine(line)
  const safe = (text: string | undefined): string | undefined =>
    text === undefined ? undefined : hideSecrets(text, '***')
  const rounded = (value: number): number => Math.round(value * 1000) / 1000 + 0
  for (const [at, line] of (lines() as Record<string, unknown>[]).entries()) {
    const asked = given[at] ?? EXCHANGE
    const { status, key_id, account_id, stream, finish_reason } = asked
    const { path, route, upstream, model, upstream_model } = line
    t.same(
      [line.status, line.key_id, line.account_id, line.stream, line.finish_reason],
      [status, key_id, account_id, stream, finish_reason],
    )
    const texts = [asked.path, asked.route, asked.upstream, asked.model, asked.upstream_model]
    t.same([path, route, upstream, model, upstream_model], texts.map(safe))
    t.equal(line.duration_ms, rounded(asked.duration_ms))
    t.equal(line.overhead_ms, rounded(asked.overhead_ms ?? 0))
    t.equal(line.bytes_in, rounded(asked.bytes_in ?? 0))
  }
  t.end()
})

void t.test('fields without a name on the list do not get out', (t) => {
  const { log, text } = open('debug')
  const stray: object = {
    headers: { authorization: 'canary-header' },
    body: 'canary-body',
    messages: [{ content: 'canary-prompt' }],
    err: { config: { data: 'canary-config' } },
    url: 'https://x/?q=canary-search',
    reason: { nested: 'canary-nested' },
  }
  log.exchangeLine({ ...EXCHANGE, ...stray })
  for (const level of ['debug', 'info', 'warn'] as const) {
    log[level]('event', { ...stray, reason: undefined })
    log[level]('event', Object.assign({}, stray))
  }
  log.error('event', new Error('plain'), Object.assign({}, stray))
  t.equal(text().trimEnd().split('\n').length, 8)
  t.notMatch(text(), 'canary')
  t.end()
})

void t.test('text that looks like a key is hidden in every field', (t) => {
  const { log, text } = open('debug')
  const tail = (): string => randomBytes(24).toString('base64url')
  for (let round = 0; round < 200; round += 1) {
    const secret = tail()
    const forms = [`sk_${secret}`, `sk-ant-${secret}`, `AIza${secret}`, `Bearer ${secret}`]
    const form = forms[round % forms.length] ?? ''
    log.exchangeLine({
      ...EXCHANGE,
      client_request_id: form,
      path: `/v1/${form}/x`,
      model: `x${form}`,
      param: `messages["${form}"]`,
      upstream_code: form,
      upstream_message: `refused ${form}`,
    })
    log.error('event', new Error(`refused ${form}`, { cause: new TypeError(form) }))
    log.error('event', new GatewayError('bug', form, { cause: new GatewayError('bug', form) }))
    log.warn('event', { reason: `the server replied: ${form}` })
    t.equal(hideSecrets(`before ${form} after`, '***').includes(secret), false)
    t.equal(text().includes(secret), false, `form ${round % forms.length}`)
  }
  t.equal(hideSecrets('$argon2id$v=19$m=65536$c2FsdA$aGFzaA', '***'), '***')
  t.equal(hideSecrets('a task-list and a desk', '***'), 'a task-list and a desk')
  t.end()
})

void t.test('an error shows kind, code, causes; never what a client or upstream wrote', (t) => {
  const { log, text, lines } = open('debug')
  const prompt = 'canary prompt about a private matter'
  const errors: unknown[] = Object.keys(ERRORS)
    .filter((kind): kind is ErrorKind => Object.hasOwn(ERRORS, kind))
    .filter((kind) => ERRORS[kind].source !== 'gateway')
    .map((kind) => new GatewayError(kind, `cannot use '${prompt}'`, { upstreamCode: 'E1' }))
  errors.push(prompt, { message: prompt }, null)
  try {
    JSON.parse(`"${prompt}" and "${prompt}"`)
  } catch (error) {
    errors.push(error)
  }
  try {
    Buffer.from(BigInt(1) as unknown as string)
    Buffer.alloc(prompt as unknown as number)
  } catch (error) {
    errors.push(error)
  }
  for (const error of errors) {
    log.error('event', error)
    log.error('event', new Error('outer', { cause: error }))
  }
  t.notMatch(text(), 'canary')
  t.ok(lines().length === errors.length * 2 && errors.length > 15)
  log.error('last', Object.assign(new Error('no luck'), { code: 'ECONNRESET' }))
  t.match(lines().at(-1), {
    error: { kind: 'Error', message: 'no luck', code: 'ECONNRESET', stack: [/^at /] },
  })
  t.end()
})

void t.test('a stack is for level debug only', (t) => {
  const { log, text } = open('info')
  log.error('event', new Error('no luck'))
  log.debug('event')
  t.notMatch(text(), 'stack')
  t.equal(text().split('\n').length, 2, 'and debug lines too')
  t.end()
})

void t.test('silent is silent', (t) => {
  const { log, text } = open('silent')
  log.exchangeLine({ ...EXCHANGE, status: 500 })
  log.error('event', new Error('no luck'))
  t.equal(text(), '')
  t.end()
})

void t.test('flush writes everything out', async (t) => {
  const file = join(t.testdir(), 'log')
  let lost = 0
  const log = createLogger({ level: 'info', destination: file, onLost: (lines) => (lost += lines) })
  for (let index = 0; index < 1000; index += 1) log.exchangeLine(EXCHANGE)
  await log.flush()
  t.equal(readFileSync(file, 'utf8').trimEnd().split('\n').length, 1000)
  t.equal(lost, 0)
})

void t.test('a destination that is too slow loses whole lines, and they are counted', async (t) => {
  const file = join(t.testdir(), 'log')
  let dropped = 0
  const onLost = (lines: number): unknown => (dropped += lines)
  const log = createLogger({ level: 'info', destination: file, onLost })
  const total = 60_000
  for (let index = 0; index < total; index += 1) log.exchangeLine(EXCHANGE)
  await log.flush()
  t.ok(dropped > 0, `${dropped} of ${total}`)
  const lines = readFileSync(file, 'utf8').trimEnd().split('\n')
  for (const line of lines.slice(-100)) t.ok(line.startsWith('{') && line.endsWith('}'))
  t.equal(lines.length + dropped, total)
})

void t.test('a destination that takes nothing (a full disk) does not prevent the exit', (t) => {
  const module = JSON.stringify(new URL('../../src/observe/log.js', import.meta.url).href)
  const program = `
    const { createLogger } = await import(${module})
    let lost = 0
    const onLost = (lines) => (lost += lines)
    const log = createLogger({ level: 'info', destination: '/dev/full', onLost })
    for (let index = 0; index < 50; index += 1) log.info('x', { reason: 'y'.repeat(200) })
    await log.flush(500)
    log.info('after')
    process.exit(lost > 0 ? 3 : 4)`
  const { status } = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
    timeout: 20_000,
  })
  t.equal(status, 3)
  t.end()
})
