// Goal: a reply that an upstream truncates never looks complete, at any position and for any cause (D-60,
//   D-61, G7).
// Method: for each dialect, one recorded reply of the emulator is cut at every event and at bytes spread over
//   it, with each kind of connection end; the remaining bytes determine the reply that the client may get.
import t from 'tap'
import { startGateway } from '../../helpers/gateway.js'
import {
  ask,
  checkAfter,
  checkFailed,
  eventually,
  isComplete,
  question,
  recordingOf,
  series,
  UPSTREAMS,
  watchProcess,
} from '../scene.js'

const MODES = ['reset', 'eof', 'close', 'chunk', 'length'] as const
/** The text of each dialect that completes the reply; an end of file after it is not an error. */
const FINISH =
  /^data:.*("finish_reason": ?"stop"|"stop_reason": ?"end_turn"|"finishReason": ?"STOP").*(?:\r?\n){2}/m
const KINDS = ['upstream_truncated', 'upstream_malformed']
/** More positions than by default, spread over the bytes: SLUICE_CUTS=100. */
const CUTS = Number(process.env['SLUICE_CUTS'] ?? 8)

for (const { name, model } of UPSTREAMS) {
  void t.test(`D-60, D-61: ${name}: a stream`, async (t) => {
    watchProcess(t)
    const gateway = await startGateway(t)
    const body = question(model, true)
    const full = await recordingOf(gateway, body)
    const finish = FINISH.exec(full.body)
    const finishedAt = Buffer.byteLength(
      full.body.slice(0, (finish?.index ?? NaN) + (finish?.[0].length ?? NaN)),
    )
    const size = Buffer.byteLength(full.body)
    t.ok(finishedAt > 0 && finishedAt <= size, 'the recording has a finish')
    const good = await ask(gateway, body)
    t.ok(isComplete(good), 'the whole reply is complete')
    for (const mode of MODES) {
      const wrong: string[] = []
      for (let i = 0; i <= CUTS; i += 1) {
        const bytes = Math.min(size - 1, Math.round((i * size) / CUTS))
        gateway.emulator.replay(full, { fault: { kind: 'cut', mode, bytes }, chunking: 'events' })
        const seen = await ask(gateway, body)
        // This mode sends half of the remaining bytes in a chunk that never ends.
        const remaining = mode === 'chunk' ? bytes + Math.ceil((size - bytes) / 2) : bytes
        if (!good.text.startsWith(seen.text)) wrong.push(`${bytes}: text ${seen.text}`)
        if (isComplete(seen)) {
          if (remaining < finishedAt - 2) wrong.push(`${bytes}: looks complete`)
        } else if (remaining >= finishedAt) {
          wrong.push(`${bytes}: not complete though finished: ${seen.body.slice(-200)}`)
        } else {
          checkFailed(t, seen, { name: `${mode} at ${bytes}`, kinds: KINDS })
        }
      }
      t.same(wrong, [], `${mode}: complete only after the finish`)
    }
    const ends = `sluice_stream_ends_total{upstream="${name}",end="complete"}`
    t.ok((await series(gateway, ends)) > 0)
    await checkAfter(t, gateway)
  })

  void t.test(`D-60: ${name}: cut between two events, before and after content`, async (t) => {
    watchProcess(t)
    const gateway = await startGateway(t)
    const body = question(model, true)
    for (const mode of MODES.filter((each) => each !== 'chunk')) {
      gateway.emulator.script({ times: 1, fault: { kind: 'cut', mode, event: 0 } })
      const before = await ask(gateway, body)
      t.equal(before.status, 502, `${mode} before content is a real status`)
      checkFailed(t, before, { name: `${mode} before content`, kinds: KINDS })
      gateway.emulator.script({
        times: 1,
        fault: { kind: 'cut', mode, event: name === 'anthropic' ? 4 : 2 },
      })
      const after = await ask(gateway, body)
      t.equal(after.status, 200, `${mode} after content`)
      t.not(after.text, '', `${mode}: the received part is delivered`)
      checkFailed(t, after, { name: `${mode} after content`, kinds: KINDS })
    }
    const ends = (end: string): Promise<number> =>
      series(gateway, `sluice_stream_ends_total{upstream="${name}",end="${end}"}`)
    const failed = async (): Promise<boolean> => (await ends('truncated')) === 2 * (MODES.length - 1)
    await eventually(failed, 'they are counted by their outcome')
    t.equal(await ends('client_gone'), 0, 'no client has left')
    await checkAfter(t, gateway)
  })

  void t.test(`D-66: ${name}: content, and an invalid event, in one chunk`, async (t) => {
    watchProcess(t)
    const gateway = await startGateway(t)
    const body = question(model, true)
    const full = await recordingOf(gateway, body)
    const index = full.body.indexOf('data:', full.body.length * 0.6)
    const broken = { ...full, body: `${full.body.slice(0, index)}data: {"\r\n\r\n` }
    for (const chunking of ['whole', 'events'] as const) {
      gateway.emulator.replay(broken, { chunking })
      const seen = await ask(gateway, body)
      t.equal(seen.status, 200, `${chunking}: content came first`)
      t.not(seen.text, '', `${chunking}: and is delivered`)
      checkFailed(t, seen, { name: chunking, kinds: KINDS })
    }
    await checkAfter(t, gateway)
  })

  void t.test(`D-60: ${name}: a whole reply`, async (t) => {
    watchProcess(t)
    const gateway = await startGateway(t)
    // Few tokens: the gateway requests a long reply as a stream.
    const body = question(model, false, { max_tokens: 1000 })
    const full = await recordingOf(gateway, body)
    for (const mode of MODES) {
      for (const share of [0, 0.3, 0.9, 1]) {
        const bytes = Math.min(
          Math.floor(Buffer.byteLength(full.body) * share),
          Buffer.byteLength(full.body.trimEnd()) - 1,
        )
        gateway.emulator.replay(full, { fault: { kind: 'cut', mode, bytes } })
        const seen = await ask(gateway, body)
        t.equal(seen.status, 502, `${mode} at ${bytes}`)
        checkFailed(t, seen, { name: `${mode} at ${bytes} of a whole reply`, kinds: KINDS })
      }
    }
    await checkAfter(t, gateway)
  })
}
