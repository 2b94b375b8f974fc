/**
 * Goal: native access under guardrails is judged, or refused when the file is loaded; it is never exempt in
 * silence.
 */
import { join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import { loadConfigText } from '../../src/config/load-config.js'
import { formatProblem } from '../../src/config/config-problem.js'
import { eventually } from '../faults/scene.js'
import { rowsOf } from '../helpers/ledger.js'
import { startGateway } from '../helpers/gateway.js'
import { startProvider } from './provider.js'

const GUARDRAILS = `guardrails:
  pii: { detect: [email], action: mask }
  words: { patterns: [FORBIDDEN], window_chars: 16 }
`

function problemsOf(t: Test, upstream: string, guardrails = GUARDRAILS, route = 'guardrails: [pii]'): string {
  const text = `upstreams:
  own: { dialect: openai-chat, base_url: 'http://127.0.0.1:1/v1', api_key: k, ${upstream} }
routes:
  - { prefix: gpt-, upstream: own, ${route} }
${guardrails}`
  const path = join(t.testdir(), 'gateway.yaml')
  const loaded = loadConfigText({ path, text, files: {} }, {})
  return loaded.ok ? '' : loaded.errors.map(formatProblem).join('\n')
}

void t.test('a file that would exempt native access is refused with the name and the line', (t) => {
  const open = "native: ['POST /v1/chat/completions']"
  t.match(
    problemsOf(t, open),
    /gateway\.yaml:2:.*upstreams\.own\.native: the upstream own has native access, and routes\[0\]/,
  )
  t.notMatch(problemsOf(t, `${open}, guardrails: []`), /has native|native rule/)
  t.notMatch(problemsOf(t, `${open}, guardrails: [pii]`), /has native|native rule/)
  const applied = 'guardrails: { all: { detect: [email], apply_to: { all: true } } }'
  t.match(problemsOf(t, open, applied, 'sticky: none'), /the guardrail all has apply_to/)
  const files = "native: ['POST /v1/chat/completions', 'POST /v1/files'], guardrails: [pii]"
  t.match(
    problemsOf(t, files),
    /gateway\.yaml:2:.*upstreams\.own\.native\[1\]: the upstream own has guardrails/,
  )
  t.match(problemsOf(t, "native: ['GET /v1/responses'], guardrails: [pii]"), /native\[0\]/)
  t.end()
})

void t.test('native requests and replies are judged', async (t) => {
  const provider = await startProvider(t)
  const { origin } = provider
  const gateway = await startGateway(t, {
    more: GUARDRAILS,
    cloud: `dialect: openai-chat, base_url: '${origin}/v1', api_key: k, native: ['POST /v1/chat/completions', 'POST /v1/messages'], guardrails: [pii, words]`,
  })
  const ask = async (
    content: string,
    stream = false,
    path = 'chat/completions',
  ): Promise<[Response, string]> => {
    const response = await fetch(`${gateway.origin}/native/cloud/v1/${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.secret}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        model: 'gpt-5.4',
        max_tokens: 10,
        stream,
        messages: [{ role: 'user', content }],
      }),
    })
    return [response, await response.text()]
  }
  for (const stream of [false, true]) {
    provider.reply = { text: 'It is joe@example.com.' }
    const [masked, text] = await ask('I am a@example.com', stream)
    t.equal(masked.status, 200)
    t.match(JSON.stringify(provider.bodies.at(-1)), /I am \[email\]/)
    t.match(text, /It is [^]*\[email\]\./)
    t.notMatch(text, /joe@/)
    t.equal(masked.headers.get('x-sluice-guardrails'), 'pii:mask')
    const [refused, body] = await ask('FORBIDDEN', stream)
    t.equal(refused.status, 400)
    t.match(body, /guardrail_blocked/)
    provider.reply = { text: 'A FORBIDDEN word' }
    const [blocked] = await ask('hi', stream)
    t.equal(blocked.status, 400)
  }
  provider.reply = { text: `${'long '.repeat(8)}FORBIDDEN`, split: (text) => Array.from(text) }
  const [, cut] = await ask('hi', true)
  t.match(cut, /content_filter/)
  t.match(cut, /\[DONE\]\n\n$/)
  t.notMatch(cut, /FORB/)
  // Chunks that have arrived together with the refusal.
  const rest = `${'long '.repeat(8)}FORBIDDEN ${'rest '.repeat(9)}`
  provider.reply = { text: rest, split: (text) => Array.from(text) }
  t.match((await ask('hi', true))[1], /content_filter[^]*\[DONE\]\n\n$/)
  const [messages, text] = await ask('hi', false, 'messages')
  t.equal(messages.status, 400)
  t.match(text, /guardrail_blocked/)
  const rows = await rowsOf(gateway)
  t.ok(rows.every((row) => row.ingress === 'native'))
  t.match(rows[0], { guardrails: 'pii:mask', outcome: 'ok', usage: { input: 5, output: 7 } })
  t.match(rows.at(-1), { guardrails: 'words:block', outcome: 'guardrail_blocked', status: 400 })
})

void t.test('a refused native stream is cut, or read on and metered', async (t) => {
  const provider = await startProvider(t)
  for (const setting of ['cancel', 'drain', 'drain_until_usage']) {
    const gateway = await startGateway(t, {
      more: GUARDRAILS,
      cloud: `dialect: openai-chat, base_url: '${provider.origin}/v1', api_key: k, native: ['POST /v1/chat/completions'], guardrails: [words], on_disconnect: ${setting}`,
    })
    const { closedEarly } = provider
    for (const [text, status] of [
      ['a good beginning of it all, then FORBIDDEN things and more of the rest', 200],
      ['FORBIDDEN things and more of the rest, to the end of the whole reply', 400],
    ] as const) {
      // The rest waits until the client has its end.
      let isAnswered = false
      let sent = 0
      provider.reply = {
        text,
        split: (whole) => whole.split(/(?<= )/),
        pace: async () => {
          sent += 1
          if (sent > 9 && setting !== 'cancel') await eventually(() => isAnswered, 'the end')
          else await new Promise((resolve) => setImmediate(resolve))
        },
      }
      const response = await fetch(`${gateway.origin}/native/cloud/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${gateway.secret}`, 'content-type': 'application/json' },
        body: JSON.stringify({
          ...{ model: 'gpt-5.4', stream: true },
          messages: [{ role: 'user', content: 'hi' }],
        }),
      })
      const reply = await response.text()
      isAnswered = true
      t.equal(response.status, status, setting)
      if (status === 200) t.match(reply, /content_filter[^]*\[DONE\]\n\n$/)
      t.notMatch(reply, /FORBIDDEN|things|rest/)
    }
    await eventually(() => gateway.lines.length >= 2, 'the exchanges are over')
    for (const row of await rowsOf(gateway)) {
      t.match(row, { outcome: 'guardrail_blocked', guardrails: 'words:block' }, setting)
      if (setting !== 'cancel') t.match(row, { usage: { input: 5, output: 7 } }, setting)
      else t.not(row.usage.output, 7, setting)
    }
    if (setting !== 'cancel') t.equal(provider.closedEarly, closedEarly, setting)
  }
})
