// Goal: the client is finished at the terminator, regardless of later bytes of the upstream, and the
//   upstream's connection is reused or closed within about a second (D-78).
// Method: upstreams that continue to send, never end the body, or end it properly; the client's time, the
//   upstream's sockets and the count of attempts are checked.
import t from 'tap'
import { startGateway } from '../../helpers/gateway.js'
import {
  ask,
  checkAfter,
  eventually,
  isComplete,
  openClient,
  question,
  recordingOf,
  series,
  UPSTREAMS,
  watchProcess,
} from '../scene.js'
import { startSocketUpstream } from '../socket-upstream.js'

for (const { name, model } of UPSTREAMS) {
  void t.test(`D-78: ${name}: continues to send, or never ends`, async (t) => {
    watchProcess(t)
    const gateway = await startGateway(t)
    // Gemini has no terminator except the end of the body, so its finish is final only there.
    const endsByItself = name !== 'google'
    for (const kind of endsByItself ? (['extra', 'open'] as const) : []) {
      const take = gateway.emulator.script({ times: 1, fault: { kind } })
      const seen = await ask(gateway, question(model, true))
      take()
      t.ok(isComplete(seen), `${kind}: complete`)
      t.ok(seen.ownMs < 500, `${kind}: the client had its end after ${seen.ownMs} ms`)
      const tookMs = await eventually(() => gateway.emulator.open() === 0, 'upstream closed')
      t.ok(tookMs < 1500, `${kind}: upstream closed after ${tookMs} ms`)
    }
    await checkAfter(t, gateway)
  })

  void t.test(`${name}: one attempt per request, on one connection`, async (t) => {
    watchProcess(t)
    const probe = await startGateway(t)
    const body = question(model, true, { max_tokens: 100 })
    const recording = await recordingOf(probe, body)
    // More than the gateway buffers, in one chunk, as a fast upstream sends it.
    const padded = `: ${'x'.repeat(40_000)}\n\n${recording.body}`
    const upstream = await startSocketUpstream(t, ({ socket }) => {
      socket.write(
        `HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n` +
          `${Buffer.byteLength(padded).toString(16)}\r\n${padded}\r\n`,
      )
      setTimeout(() => socket.write('0\r\n\r\n'), 20)
    })
    const key = name === 'google' ? 'gemini' : name
    const gateway = await startGateway(t, { upstreams: { [key]: upstream.url } })
    const gauge = `sluice_inflight{upstream="${name}"}`
    for (let i = 0; i < 3; i += 1) {
      t.ok(isComplete(await ask(gateway, body)), 'complete')
      const idleMs = await eventually(async () => (await series(gateway, gauge)) === 0, gauge)
      t.ok(idleMs < 500, `in flight until ${idleMs} ms after the end`)
    }
    t.equal(upstream.connections.length, 1, 'one connection for all')
    t.equal(await series(gateway, `sluice_attempts_total{upstream="${name}",kind="ok"}`), 3)
  })

  void t.test(`${name}: a stream that arrives whole is sent in one write`, async (t) => {
    watchProcess(t)
    const probe = await startGateway(t)
    const body = question(model, true, { max_tokens: 100 })
    const recording = await recordingOf(probe, body)
    const upstream = await startSocketUpstream(t, ({ socket }) => {
      const head = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: '
      socket.write(`${head}${Buffer.byteLength(recording.body)}\r\n\r\n${recording.body}`)
    })
    const key = name === 'google' ? 'gemini' : name
    const gateway = await startGateway(t, { upstreams: { [key]: upstream.url } })
    // The timer for heads that wait too long may split one of them.
    const reads: number[] = []
    while (reads.length < 5 && !reads.includes(1)) {
      const client = openClient(t, gateway, { body })
      let count = 0
      client.socket.on('data', () => (count += 1))
      await eventually(() => client.text().endsWith('\r\n0\r\n\r\n'), 'the end')
      t.match(client.text(), 'data: [DONE]')
      reads.push(count)
    }
    t.ok(reads.includes(1), `head, content and end together: in ${reads.join(', ')} writes`)
  })

  void t.test(`${name}: one attempt per failure`, async (t) => {
    watchProcess(t)
    const gateway = await startGateway(t)
    const fault = { kind: 'cut', mode: 'eof', event: name === 'anthropic' ? 4 : 2 } as const
    gateway.emulator.script({ times: 3, fault })
    for (let i = 0; i < 3; i += 1) t.ok((await ask(gateway, question(model, true))).error)
    const counted = `sluice_attempts_total{upstream="${name}",kind="upstream_truncated"}`
    t.equal(await series(gateway, counted), 3)
    await checkAfter(t, gateway)
  })
}
