/**
 * Goal: own rules block, mask and report requests and replies in every client format, whole and as streams,
 * and the ledger entry, the log line and the metrics say what was done.
 */
import t from 'tap'
import { objectOf } from '../../src/base/json.js'
import { rowsOf } from '../helpers/ledger.js'
import { IS_LONG } from '../helpers/long-suite.js'
import { stopwatch } from '../helpers/stopwatch.js'
import { CLIENT_FORMATS, MODELS, startScene } from './guarded-gateway.js'

const RULES = `
  secrets: { patterns: ['sk_[A-Za-z0-9]{8,}'], action: mask, apply_to: { all: true } }
  pii: { detect: [email, card], action: mask, apply_to: { all: true } }
  words: { patterns: [FORBIDDEN], window_chars: 16, apply_to: { all: true } }
  seen: { patterns: [rumour], action: report, apply_to: { all: true } }
  tools: { deny_tools: [shell, 'mcp__*'], apply_to: { all: true } }
`
const each = (text: string): readonly string[] => Array.from(text)

void t.test('own rules', async (t) => {
  const scene = await startScene(t, RULES)
  const { provider, gateway, ask, post } = scene

  await t.test('a masked request reaches the upstream masked, in every pair of formats', async (t) => {
    for (const format of CLIENT_FORMATS) {
      for (const model of MODELS) {
        const reply = await ask(format, model, { text: 'I am joe@example.com, sk_abcdefgh1' })
        t.equal(reply.status, 200, `${format} ${model}`)
        const sent = JSON.stringify(provider.bodies.at(-1))
        t.match(sent, /I am \[email\], \[secrets\]/, `${format} ${model}`)
        t.equal(reply.headers.get('x-sluice-guardrails'), 'secrets:mask, pii:mask')
      }
    }
  })

  await t.test('members of the client’s own format survive a masked request', async (t) => {
    const messages = [
      { role: 'system', content: 'joe@example.com' },
      { role: 'user', content: [{ type: 'text', text: 'a@example.com' }], name: 'joe' },
      {
        role: 'assistant',
        content: null,
        tool_calls: [
          {
            id: 'c1',
            type: 'function',
            function: {
              name: 'f',
              arguments: '{"to":"b@example.com","n":12345678901234567890,"card":4111111111111111}',
            },
          },
        ],
      },
      { role: 'tool', tool_call_id: 'c1', content: 'sent to c@example.com' },
    ]
    const tools = [
      {
        type: 'function',
        function: { name: 'f', description: 'd@example.com', parameters: { type: 'object' } },
      },
    ]
    const body = {
      model: 'gpt-5.4',
      messages,
      tools,
      prediction: { type: 'content', content: 'x' },
    }
    const response = await post('/v1/chat/completions', body)
    t.equal(response.status, 200)
    const sent = JSON.stringify(provider.bodies.at(-1))
    t.match(sent, /"name":"joe"/)
    t.match(sent, /"prediction":/)
    t.match(sent, /d@example\.com/, 'definitions of tools are not judged')
    t.notMatch(sent, /[abc]@example|joe@/)
    const call = objectOf(provider.bodies.at(-1))['messages']
    t.match(
      JSON.stringify(call),
      /\{\\"to\\":\\"\[email\]\\",\\"n\\":12345678901234567890,\\"card\\":\\"\[card\]\\"\}/,
    )
  })

  await t.test('a blocked request is 400 with the place, and costs nothing', async (t) => {
    const kinds = {
      chat: 'messages[0].content',
      messages: 'messages[0].content',
      responses: 'input',
      gemini: 'contents[0].parts[0]',
    }
    for (const format of CLIENT_FORMATS) {
      const before = provider.bodies.length
      const reply = await ask(format, 'gpt-5.4', { text: 'a FORBIDDEN word' })
      t.equal(reply.status, 400, format)
      t.equal(provider.bodies.length, before, 'nothing was sent')
      t.equal(reply.headers.get('x-should-retry'), 'false')
      t.equal(reply.headers.get('x-sluice-guardrails'), 'words:block')
      t.equal(reply.error['message'], "Blocked by the guardrail 'words'.")
      t.match(reply.raw, kinds[format], 'the place')
      t.match(reply.raw, /guardrail_blocked/)
      const line = gateway.lines.at(-1)
      t.match(line, {
        outcome: 'guardrail_blocked',
        cause: 'client',
        attempts: 0,
        guardrails: 'words:block',
      })
    }
    const gemini = await ask('gemini', 'gpt-5.4', { text: 'FORBIDDEN' })
    t.match(gemini.raw, /"status":"INVALID_ARGUMENT"/)
    t.match(gemini.raw, /"metadata":\{"guardrail":"words"\}/)
    t.notMatch(gemini.raw, /FORBIDDEN/)
  })

  await t.test('arguments and results of calls are masked in every format', async (t) => {
    const input = { to: 'a@example.com', n: 1, deep: [{ 'b@example.com': 4111111111111111 }] }
    const masked = /"to\\?":\\?"\[email\]\\?",\\?"n\\?":1,\\?"deep\\?":\[\{\\?"\[email\]\\?":\\?"\[card\]/
    const bodies: readonly (readonly [path: string, body: object])[] = [
      [
        '/v1/messages',
        {
          model: 'claude-opus-5',
          max_tokens: 100,
          system: [{ type: 'text', text: 'c@example.com', cache_control: { type: 'ephemeral' } }],
          messages: [
            { role: 'user', content: 'hi' },
            { role: 'assistant', content: [{ type: 'tool_use', id: 't1', name: 'f', input }] },
            {
              role: 'user',
              content: [{ type: 'tool_result', tool_use_id: 't1', content: 'd@example.com' }],
            },
          ],
        },
      ],
      [
        '/v1/responses',
        {
          model: 'gpt-4.1',
          store: false,
          instructions: 'c@example.com',
          input: [
            { role: 'user', content: [{ type: 'input_text', text: 'hi' }] },
            { type: 'function_call', call_id: 'c', name: 'f', arguments: JSON.stringify(input) },
            { type: 'function_call_output', call_id: 'c', output: 'd@example.com' },
          ],
        },
      ],
      [
        '/v1beta/models/gemini-2.5-flash:generateContent',
        {
          systemInstruction: { parts: [{ text: 'c@example.com' }] },
          contents: [
            { role: 'user', parts: [{ text: 'hi' }] },
            { role: 'model', parts: [{ functionCall: { name: 'f', args: input } }] },
            {
              role: 'user',
              parts: [{ functionResponse: { name: 'f', response: { result: 'd@example.com' } } }],
            },
          ],
        },
      ],
    ]
    for (const [path, body] of bodies) {
      const response = await post(path, body)
      t.equal(response.status, 200, path)
      const sent = JSON.stringify(provider.bodies.at(-1))
      t.match(sent, masked, path)
      t.notMatch(sent, /@example/, path)
    }
    t.match(JSON.stringify(provider.bodies.at(-3)), /cache_control/, 'other members stay')
  })

  await t.test('embeddings and legacy prompts are judged', async (t) => {
    const embeddings = { model: 'text-embedding-3-small', input: ['fine', 'a FORBIDDEN word'] }
    const refused = await post('/v1/embeddings', embeddings)
    t.match(await refused.json(), { error: { kind: 'guardrail_blocked', param: 'input[1]' } })
    const legacy = await post('/v1/completions', { model: 'gpt-5.4', prompt: 'FORBIDDEN' })
    t.match(await legacy.json(), { error: { kind: 'guardrail_blocked', param: 'prompt' } })
  })

  await t.test('the ledger explains a refusal by place and rule', async (t) => {
    const rows = await rowsOf(gateway)
    const row = rows.find(({ errorMessage }) => errorMessage?.includes('messages[0]') === true)
    t.equal(row?.errorMessage, "Blocked by the guardrail 'words'. Where: messages[0].content, rule words.")
    t.match(row, { guardrails: 'words:block', attempts: 0, costNanoUsd: 0, source: 'none' })
  })

  await t.test('a reply is masked alike, whole and as a stream', async (t) => {
    provider.reply = { text: 'Ask joe@example.com or use sk_abcdefgh12 today.', split: each }
    for (const format of CLIENT_FORMATS) {
      for (const model of MODELS) {
        for (const stream of [false, true]) {
          const reply = await ask(format, model, { stream })
          t.equal(reply.text, 'Ask [email] or use [secrets] today.', `${format} ${model} ${stream}`)
        }
      }
    }
  })

  await t.test('a refusal before the first byte is 400, also of a stream', async (t) => {
    provider.reply = { text: 'It is FORBIDDEN.', split: each }
    for (const format of CLIENT_FORMATS) {
      for (const model of MODELS) {
        for (const stream of [false, true]) {
          const reply = await ask(format, model, { stream })
          t.equal(reply.status, 400, `${format} ${model} ${stream}`)
          t.match(reply.raw, /guardrail_blocked/)
          t.notMatch(reply.raw, /param|FORB/)
        }
      }
    }
    const line = gateway.lines.at(-1)
    t.match(line, {
      outcome: 'guardrail_blocked',
      status: 400,
      attempts: 1,
      attempted: 'google:guardrail_blocked',
    })
  })

  await t.test('after the first byte a stream ends regularly in its format', async (t) => {
    const lead = 'A text that is longer than a window. '
    provider.reply = { text: `${lead}FORBIDDEN and what follows`, split: each }
    const finishes = {
      chat: 'content_filter',
      messages: 'refusal',
      responses: 'content_filter',
      gemini: 'SAFETY',
    }
    for (const format of CLIENT_FORMATS) {
      for (const model of MODELS) {
        const reply = await ask(format, model, { stream: true })
        t.equal(reply.status, 200)
        t.equal(reply.text, lead, `${format} ${model}`)
        t.equal(reply.finish, finishes[format], `${format} ${model}`)
        t.notMatch(reply.raw, /FORB|follows|"error":\{/)
      }
    }
    const chat = await ask('chat', 'gpt-5.4', { stream: true })
    t.match(chat.raw, /"delta":\{"refusal":"Blocked by the guardrail 'words'\."\}/)
    t.match(chat.raw, /data: \[DONE\]\n\n$/)
    const messages = await ask('messages', 'gpt-5.4', { stream: true })
    t.match(
      messages.raw,
      /"stop_details":\{"type":"refusal","category":null,"explanation":"Blocked by the guardrail 'words'\."\}/,
    )
    t.match(messages.raw, /event: message_stop\n/)
    const responses = await ask('responses', 'gpt-5.4', { stream: true })
    t.match(responses.raw, /event: response\.incomplete\n/)
    t.match(responses.raw, /"status":"incomplete","content":\[\{"type":"output_text"/)
    const gemini = await ask('gemini', 'gpt-5.4', { stream: true })
    t.match(gemini.raw, /"finishMessage":"Blocked by the guardrail 'words'\."/)
    t.match(gemini.raw, /"usageMetadata":\{/)
    const array = await post('/v1beta/models/gpt-5.4:streamGenerateContent', {
      contents: [{ role: 'user', parts: [{ text: 'hi' }] }],
    })
    const chunks: unknown = JSON.parse(await array.text())
    t.match(chunks, [{}, {}], 'the array ends')
    const legacy = await post('/v1/completions', { model: 'gpt-5.4', prompt: 'hi', stream: true })
    t.match(await legacy.text(), /"refusal":"Blocked[^]*"finish_reason":"content_filter"[^]*\[DONE\]/)
    t.match(gateway.lines.at(-1), {
      outcome: 'guardrail_blocked',
      status: 200,
      guardrails: 'words:block',
    })
  })

  await t.test('arguments of calls are judged decoded and stay valid JSON', async (t) => {
    const json =
      '{"to":"jo\\u0065@example.com","list":[1,"sk_abcdefgh12"],"card":4111111111111111,"joe@example.com":true}'
    provider.reply = { call: { name: 'send', arguments: json }, split: each }
    const masked = { to: '[email]', list: [1, '[secrets]'], card: '[card]', '[email]': true }
    for (const format of CLIENT_FORMATS) {
      for (const model of MODELS) {
        for (const stream of [false, true]) {
          const { calls } = await ask(format, model, { stream })
          t.strictSame(JSON.parse(calls.at(-1) ?? ''), masked, `${format} ${model} ${stream}`)
        }
      }
    }
  })

  await t.test('denied tools are refused by name', async (t) => {
    for (const [name, status] of [
      ['shell', 400],
      ['mcp__files__read', 400],
      ['shell2', 200],
    ] as const) {
      provider.reply = { call: { name, arguments: '{}' } }
      for (const stream of [false, true]) {
        t.equal((await ask('messages', 'gpt-5.4', { stream })).status, status, name)
      }
    }
  })

  await t.test('masked reasoning has no signature', async (t) => {
    provider.reply = { reasoning: 'The user is joe@example.com.', text: 'Hello.' }
    for (const stream of [false, true]) {
      const reply = await ask('messages', 'claude-opus-5', { stream })
      t.match(reply.raw, /The user is/)
      t.notMatch(reply.raw, /joe@|c2ln/)
    }
    provider.reply = { reasoning: 'The user is Joe.', text: 'Hello.' }
    t.match((await ask('messages', 'claude-opus-5', { stream: true })).raw, /"signature":"[^"]+"/)
  })

  await t.test('a report changes nothing', async (t) => {
    provider.reply = { text: 'It is a rumour.' }
    const reply = await ask('chat', 'gpt-5.4', { text: 'a rumour?' })
    t.equal(reply.text, 'It is a rumour.')
    t.equal(reply.headers.get('x-sluice-guardrails'), 'seen:report')
    t.match(String(reply.headers.get('server-timing')), /guard;dur=/)
  })

  await t.test('content that cannot be read is noted', async (t) => {
    const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } }
    const messages = [{ role: 'user', content: [{ type: 'text', text: 'what?' }, image] }]
    const response = await post('/v1/chat/completions', { model: 'gpt-5.4', messages })
    t.equal(response.status, 200)
    t.match(
      String(response.headers.get('x-sluice-guardrails')),
      /secrets:unseen, pii:unseen, words:unseen, seen:(?:report, )?/,
    )
  })

  await t.test('the metrics have the verdicts', async (t) => {
    const text = await gateway.metrics.text()
    t.match(text, /sluice_guardrail_verdicts_total\{guardrail="pii",on="request",verdict="mask"\} \d+/)
    t.match(text, /sluice_guardrail_verdicts_total\{guardrail="words",on="response",verdict="block"\} \d+/)
    t.match(text, /sluice_guardrail_verdicts_total\{guardrail="pii",on="response",verdict="pass"\} \d+/)
    t.match(text, /sluice_guardrail_duration_seconds_count\{guardrail="pii"\} \d+/)
    t.match(text, /sluice_guardrail_breaker_state\{guardrail="pii"\} 0/)
    t.match(text, /sluice_hop_duration_seconds_count\{hop="guard"\} \d+/)
  })
})

/** Follows hundreds of instructions at each character of a text full of matches. */
const SLOW = "patterns: ['(?:a?){400}b'], action: mask, on: [request], apply_to: { all: true }"

void t.test('rules that take too long end after timeout_ms, and with the client', async (t) => {
  const text = 'aaaaab'.repeat(80_000)
  const took = async (settings: string): Promise<number> => {
    const { ask } = await startScene(t, `  slow: { ${SLOW}, timeout_ms: 100, ${settings} }`)
    const watch = stopwatch()
    const reply = await ask('chat', 'gpt-5.4', { text })
    t.ok(watch() < 2_000, 'it does not run on')
    return reply.status
  }
  t.equal(await took(''), 503)
  t.equal(await took('on_error: open'), 200)

  const { gateway } = await startScene(t, `  slow: { ${SLOW}, timeout_ms: 60000 }`)
  const leave = new AbortController()
  const body = JSON.stringify({ model: 'gpt-5.4', messages: [{ role: 'user', content: text }] })
  const headers = { authorization: `Bearer ${gateway.secret}`, 'content-type': 'application/json' }
  const left = fetch(`${gateway.origin}/v1/chat/completions`, {
    ...{ method: 'POST', headers, body, signal: leave.signal },
  }).catch(() => undefined)
  await new Promise((resolve) => setTimeout(resolve, 300))
  leave.abort()
  await left
  await new Promise((resolve) => setTimeout(resolve, 300))
  // The search would take a minute; what else the process does, such as compiling, ends within seconds.
  const waited = stopwatch()
  let used = Infinity
  while (used > 100_000 && waited() < 20_000) {
    const { user } = process.cpuUsage()
    await new Promise((resolve) => setTimeout(resolve, 500))
    used = process.cpuUsage().user - user
  }
  t.ok(used <= 100_000, 'the search has ended')
})

void t.test('timeout_ms holds for a whole reply, for every number of its events', async (t) => {
  const slow = SLOW.replace('[request]', '[response]')
  const { ask, provider } = await startScene(t, `  slow: { ${slow}, timeout_ms: 100 }`)
  provider.reply = { text: 'aaaaab'.repeat(40_000), split: (text) => text.match(/.{1,60}/g) ?? [] }
  const watch = stopwatch()
  const reply = await ask('chat', 'gpt-5.4', { stream: true })
  t.match(reply.raw, /guardrail_unavailable/)
  t.ok(watch() < 10_000, 'it does not run on')
})

void t.test('a long search runs beside other requests, which go on', async (t) => {
  const { ask, provider } = await startScene(t, `  slow: { ${SLOW}, timeout_ms: 60000 }`)
  // Loads what one request needs, and the thread.
  await ask('chat', 'gpt-5.4', { text: 'hi' })
  const state = { isOver: false }
  const units = IS_LONG ? 40_000 : 15_000
  const long = ask('chat', 'gpt-5.4', { text: 'aaaaab'.repeat(units) }).finally(() => (state.isOver = true))
  let answered = 0
  const before = performance.eventLoopUtilization()
  while (!state.isOver) {
    t.equal((await ask('chat', 'gpt-5.4', { text: 'hi' })).status, 200)
    answered += 1
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  t.equal((await long).status, 200)
  const sent = provider.bodies.map((body) => JSON.stringify(body)).find((body) => body.length > 50_000) ?? ''
  t.equal(sent.split('[slow]').length - 1, units, 'every match is masked')
  t.ok(answered > 10, `${answered} requests were answered meanwhile`)
  t.ok(performance.eventLoopUtilization(before).utilization < 0.9, 'the event loop is free')
})

void t.test(
  'expressions that other engines need seconds for judge megabytes within timeout_ms',
  async (t) => {
    const patterns = "patterns: ['[A-Za-z0-9+/]{40,200}={0,2}\\.corp', '(a+)+$'], apply_to: { all: true }"
    const { ask } = await startScene(t, `  own: { ${patterns} }`)
    const base64 = Buffer.from(Array.from({ length: 3_000 }, (_, at) => (at * at) % 251)).toString('base64')
    for (const [text, status] of [
      [`${base64.repeat(500)} b`, 200],
      [`${base64.repeat(500)}.corp`, 400],
      [`${'a'.repeat(1_048_576)}b`, 200],
      ['a'.repeat(1_048_576), 400],
    ] as const) {
      t.equal((await ask('chat', 'gpt-5.4', { text })).status, status, `${text.length} characters`)
    }
  },
)
