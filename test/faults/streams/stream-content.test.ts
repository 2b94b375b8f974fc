// Goal: for any content of a stream's events, the client gets either the whole reply or an error, never a
//   part that looks complete; memory and token counts are limited (D-66, D-68, D-69, D-75).
// Method: invalid, unknown and duplicate events, unusual sizes and invalid token counts on each upstream.
import t from 'tap'
import { objectOf } from '../../../src/base/json.js'
import { startGateway } from '../../helpers/gateway.js'
import {
  ask,
  checkAfter,
  checkFailed,
  eventually,
  isComplete,
  lastLine,
  question,
  recordingOf,
  UPSTREAMS,
  watchProcess,
} from '../scene.js'
import { startSocketUpstream } from '../socket-upstream.js'

const FAILED = ['upstream_malformed', 'upstream_truncated', 'upstream_failed']

for (const { name, model } of UPSTREAMS) {
  void t.test(`D-66: ${name}: invalid and unknown events`, async (t) => {
    watchProcess(t)
    const gateway = await startGateway(t)
    const good = await ask(gateway, question(model, true))
    t.ok(isComplete(good))
    for (const event of [0, 3]) {
      gateway.emulator.script({ times: 1, fault: { kind: 'garbage', mode: 'json', event } })
      const broken = await ask(gateway, question(model, true))
      checkFailed(t, broken, { name: `broken JSON before event ${event}`, kinds: FAILED })
      gateway.emulator.script({ times: 1, fault: { kind: 'unknown', event } })
      const unknown = await ask(gateway, question(model, true))
      t.ok(isComplete(unknown), `unknown event before event ${event}`)
      t.equal(unknown.text, good.text)
    }
    await checkAfter(t, gateway)
  })

  void t.test(`D-66: ${name}: duplicate events, and events after the end`, async (t) => {
    watchProcess(t)
    const gateway = await startGateway(t)
    const body = question(model, true)
    const recording = await recordingOf(gateway, body)
    const good = await ask(gateway, body)
    const events = recording.body.match(/[\s\S]+?(?:\r\n\r\n|\n\n)/g) ?? []
    const content = events[name === 'anthropic' ? 4 : 1] ?? ''
    gateway.emulator.replay({ ...recording, body: [...events, content].join('') })
    const after = await ask(gateway, body)
    // If only the end of the body ends a stream, such text is still part of the reply.
    const { text } = after
    const isWhole = good.text.startsWith(text) || text.startsWith(good.text)
    if (isComplete(after)) t.ok(isWhole, 'text after the end does not change the reply')
    else checkFailed(t, after, { name: 'text after the end', kinds: FAILED })
    gateway.emulator.replay({ ...recording, body: [events[0], ...events].join('') })
    const twice = await ask(gateway, body)
    if (!isComplete(twice)) checkFailed(t, twice, { name: 'two starts', kinds: FAILED })
    else t.ok(twice.text.endsWith(good.text), 'a doubled start changes nothing')
    await checkAfter(t, gateway)
  })

  void t.test(`D-68: ${name}: any size of chunk`, async (t) => {
    watchProcess(t)
    const gateway = await startGateway(t)
    const text = 'Grüße, 世界, 👋🏽 [[words: 30]]'
    const good = await ask(gateway, question(model, true, { text }))
    for (const bytes of [1, 2, 3, 7, 4096]) {
      gateway.emulator.script({ times: 1, fault: { kind: 'chunks', bytes } })
      const seen = await ask(gateway, question(model, true, { text }))
      t.ok(isComplete(seen), `${bytes} bytes`)
      t.equal(seen.text, good.text)
      t.notMatch(seen.body, '\uFFFD')
    }
    gateway.emulator.script({ times: 1, fault: { kind: 'lump' } })
    t.equal((await ask(gateway, question(model, true, { text }))).text, good.text, 'all in one')
    await checkAfter(t, gateway)
  })

  void t.test(`D-69: ${name}: a giant event`, async (t) => {
    watchProcess(t)
    const gateway = await startGateway(t)
    const fault = { kind: 'giant', bytes: 4 * 1024 * 1024 } as const
    if (name === 'openai') gateway.emulator.script({ times: 1, fault })
    else gateway.emulator.script({ times: 1, fault: { ...fault, bytes: 17 * 1024 * 1024 } })
    const seen = await ask(gateway, question(model, true), 10_000)
    if (isComplete(seen)) t.ok(seen.text.length >= fault.bytes)
    else checkFailed(t, seen, { name: 'an event over the cap', kinds: FAILED })
    await checkAfter(t, gateway)
  })

  void t.test(`D-75: ${name}: invalid token counts`, async (t) => {
    watchProcess(t)
    const gateway = await startGateway(t)
    const more = { stream_options: { include_usage: true } }
    for (const mode of ['missing', 'null', 'negative', 'huge', 'twice']) {
      gateway.emulator.script({ times: 2, fault: { kind: 'usage', mode } })
      for (const stream of [true, false]) {
        const seen = await ask(gateway, question(model, stream, { ...(stream ? more : {}) }))
        t.ok(isComplete(seen), `${mode}, stream ${stream}`)
        const { input_tokens: input, output_tokens: output } = lastLine(gateway)
        for (const count of [input, output]) {
          const isFit =
            count === undefined || (Number.isInteger(count) && Math.abs(Number(count) - 5e16) <= 5e16)
          t.ok(isFit, `${mode}: ${String(count)} in the log`)
        }
        if (name === 'openai') continue
        const counts = Object.values(objectOf(seen.data.map(({ usage }) => usage).find(Boolean)))
        const bad = counts.filter((each) => typeof each === 'number' && each < 0)
        t.same(bad, [], `${mode}: no negative count reaches the client`)
      }
    }
    const metrics = await gateway.metrics.text()
    t.notMatch(metrics, /^gen_ai_client_token_usage_sum.* (-|NaN)/m)
    await checkAfter(t, gateway)
  })
}

/** The text until the end or the cut of the connection. */
async function readAll({ body }: Response): Promise<string> {
  const decoder = new TextDecoder()
  const reader = body?.getReader()
  let text = ''
  try {
    for (;;) {
      const read = await reader?.read()
      if (read === undefined || read.done) return text
      const chunk: unknown = read.value
      if (chunk instanceof Uint8Array) text += decoder.decode(chunk, { stream: true })
    }
  } catch {
    // The connection is closed after an error.
    return text
  }
}

void t.test('D-69: an endless event is refused, and memory stays bounded', async (t) => {
  watchProcess(t)
  let sent = 0
  const upstream = await startSocketUpstream(t, ({ socket }) => {
    socket.write('HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: {"x":"')
    const chunk = Buffer.alloc(65_536, 'x')
    const more = (): void => {
      while (!socket.destroyed && sent < 256e6 && socket.write(chunk)) sent += chunk.length
    }
    socket.on('drain', more)
    more()
  })
  for (const key of ['openai', 'anthropic', 'gemini'] as const) {
    sent = 0
    const gateway = await startGateway(t, { upstreams: { [key]: upstream.url } })
    const model = UPSTREAMS.find(({ name }) => name === (key === 'gemini' ? 'google' : key))?.model
    if (key === 'openai') {
      // The bytes of a large event pass while it arrives, so that the error follows a part of it.
      const reply = await fetch(`${gateway.origin}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${gateway.secret}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model, stream: true, messages: [{ role: 'user', content: 'Hi' }] }),
      })
      const text = await readAll(reply)
      t.match(text.slice(-400), '"kind":"upstream_malformed"', key)
      t.notMatch(text.slice(-400), '[DONE]', key)
    } else {
      const seen = await ask(gateway, question(model ?? '', true), 10_000)
      checkFailed(t, seen, { name: key, kinds: ['upstream_malformed'] })
    }
    t.ok(sent < 64e6, `${key}: the upstream was stopped after ${sent} bytes`)
    const used = upstream.connections.filter(({ requests }) => requests.length > 0)
    await eventually(() => used.every(({ closedMs }) => closedMs !== null), 'closed')
  }
})
