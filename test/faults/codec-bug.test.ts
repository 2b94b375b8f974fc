// Goal: if a codec throws, the client gets an error of kind `bug` without details, and the log line has the
//   details.
// Method: one method of a dialect is made to throw, in each place where the gateway calls it.
import t, { type Test } from 'tap'
import { upstreamCodecOf } from '../../src/formats/index.js'
import type { UpstreamCodec, StreamDecoder } from '../../src/formats/dialect.js'
import { startGateway } from '../helpers/gateway.js'
import { ask, checkAfter, checkFailed, question, watchProcess } from './scene.js'

class Unexpected extends Error {}

function anthropic(): UpstreamCodec {
  const upstreamCodec = upstreamCodecOf('anthropic')
  if (upstreamCodec === null) throw new Error('no such dialect')
  return upstreamCodec
}

/** Replaces a member of the dialect until the test ends. */
function replaceMember<K extends keyof UpstreamCodec>(t: Test, name: K, value: UpstreamCodec[K]): () => void {
  const upstreamCodec = anthropic()
  const real = upstreamCodec[name]
  const restore = (): void => {
    Object.defineProperty(upstreamCodec, name, { value: real, configurable: true, writable: true })
  }
  Object.defineProperty(upstreamCodec, name, { value, configurable: true, writable: true })
  t.teardown(restore)
  return restore
}

function fails(): never {
  throw new Unexpected('a failure of the test')
}

const real = anthropic()

/** A decoder that throws after some events. */
function decoderThatFails(index: number): UpstreamCodec['newDecoder'] {
  const make = real.newDecoder.bind(real)
  return (request, sink): StreamDecoder => {
    const decoder = make(request, sink)
    let frames = 0
    return {
      frame: (name, data) => {
        frames += 1
        if (frames > index) fails()
        decoder.frame(name, data)
      },
      end: () => decoder.end(),
    }
  }
}

const PLACES: {
  place: string
  stream: boolean
  begun: boolean
  breakCodec: (t: Test) => () => void
}[] = [
  {
    place: 'encodeRequest',
    stream: false,
    begun: false,
    breakCodec: (t) => replaceMember(t, 'encodeRequest', fails),
  },
  {
    place: 'decodeReply',
    stream: false,
    begun: false,
    breakCodec: (t) => replaceMember(t, 'decodeReply', fails),
  },
  {
    place: 'newDecoder',
    stream: true,
    begun: false,
    breakCodec: (t) => replaceMember(t, 'newDecoder', fails),
  },
  {
    place: 'first frame',
    stream: true,
    begun: false,
    breakCodec: (t) => replaceMember(t, 'newDecoder', decoderThatFails(0)),
  },
  {
    place: 'later frame',
    stream: true,
    begun: true,
    breakCodec: (t) => replaceMember(t, 'newDecoder', decoderThatFails(6)),
  },
]

for (const { place, stream, begun, breakCodec } of PLACES) {
  void t.test(`${place} throws`, async (t) => {
    watchProcess(t)
    const gateway = await startGateway(t)
    const restore = breakCodec(t)
    gateway.emulator.script({ times: 1, fault: { kind: 'delay', mode: 'each', ms: 5 } })
    // Few tokens: the gateway requests a long reply as a stream.
    const body = question('claude-sonnet-4-5', stream, { max_tokens: 1000 })
    const seen = await ask(gateway, body)
    restore()
    t.equal(seen.status, begun ? 200 : 500)
    checkFailed(t, seen, { name: place, kinds: ['bug'] })
    t.notMatch(seen.body, 'tripped', 'the client receives no details')
    const line = gateway.lines.find(({ msg }) => msg === 'unforeseen failure')
    t.match(JSON.stringify(line?.['error']), 'a failure of the test')
    t.equal(line?.['request_id'], seen.headers['x-request-id'])
    await checkAfter(t, gateway)
  })
}

void t.test('decodeError throws', async (t) => {
  watchProcess(t)
  const gateway = await startGateway(t)
  const restore = replaceMember(t, 'decodeError', fails)
  gateway.emulator.script({ times: 1, fault: { kind: 'status', code: 500 } })
  checkFailed(t, await ask(gateway, question('claude-sonnet-4-5', true)), {
    name: 'decodeError',
    kinds: ['bug'],
  })
  restore()
  await checkAfter(t, gateway)
})
