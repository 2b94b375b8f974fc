/**
 * Goal: the end of a reply waits for what must be done before it, and nothing else of it does; a part of a reply, a
 * failure and a client that left have each their own end.
 * Method: a translation that passes text on and asks for the wait at its last piece; a reader that writes down what it
 * gets, attached before, meanwhile and after.
 */
import t, { type Test } from 'tap'
import { loadConfig } from '../../src/config/load.js'
import { createSnapshot } from '../../src/config/snapshot.js'
import { Exchange } from '../../src/gateway/exchange.js'
import { Generation } from '../../src/gateway/generation.js'
import { ReplyTransform } from '../../src/gateway/streams/reply-transform.js'
import { PassedStream } from '../../src/gateway/streams/passthrough-transform.js'
import { egressOf } from '../../src/dialects/index.js'
import { Metrics } from '../../src/metrics/hops.js'
import type { HttpRequest, HttpResponse } from '../../src/http/message.js'
import { openServer } from '../../src/http/server.js'
import { NO_AFTERCARE } from '../helpers/aftercare.js'

/** An exchange of a real request, which nobody answers. */
async function exchange(t: Test): Promise<Exchange> {
  const loaded = loadConfig('config/gateway.yaml', {})
  if (!loaded.ok) throw new Error('the shipped configuration does not load')
  const metrics = new Metrics({ processMetrics: false })
  const generation = new Generation(createSnapshot(loaded, 1, 0), metrics, null)
  t.teardown(() => generation.destroy())
  const handed = new Promise<[HttpRequest, HttpResponse]>((resolve) => {
    void openServer({
      host: '127.0.0.1',
      port: 0,
      handler: (req, res) => resolve([req, res]),
    }).then((server) => {
      const asked = fetch(`http://127.0.0.1:${server.port}/`).catch(() => undefined)
      t.teardown(async () => {
        await server.drain(0)
        await asked
      })
    })
  })
  const [req, res] = await handed
  return new Exchange('id', req, res, generation, performance.now(), NO_AFTERCARE)
}

interface Stage {
  readonly stream: ReplyTransform
  readonly heard: string[]
  readonly open: () => void
  readonly release: () => void
}

async function stage(t: Test): Promise<Stage> {
  const x = await exchange(t)
  const tap = egressOf('openai-chat')?.newTap?.({ includeUsage: false })
  if (tap === undefined) throw new Error('chat completions cannot pass')
  const translation = new PassedStream(tap)
  let release = (): void => undefined
  translation.write = (chunk) => {
    if (translation.outcome !== 'open') return ''
    if (chunk.includes('last')) {
      translation.outcome = 'complete'
      x.holding = new Promise((resolve) => (release = resolve))
    }
    return chunk
  }
  const stream = new ReplyTransform(translation, x)
  const heard: string[] = []
  const open = (): void => {
    stream.on('data', (piece: Buffer) => heard.push(piece.toString()))
    stream.on('end', () => heard.push('finish'))
  }
  return { stream, heard, open, release: () => release() }
}

const later = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

void t.test('only the last piece waits, and the end with it', async (t) => {
  const { stream, heard, open, release } = await stage(t)
  open()
  stream.write(Buffer.from('first'))
  t.same(heard, ['first'], 'at once')
  stream.write(Buffer.from('last'))
  stream.end()
  await later()
  t.same(heard, ['first'])
  release()
  await later()
  t.same(heard, ['first', 'last', 'finish'])
})

void t.test('a client whose side opens meanwhile, or later, gets all in order', async (t) => {
  for (const opensFirst of [true, false]) {
    const { stream, heard, open, release } = await stage(t)
    stream.write(Buffer.from('first'))
    stream.write(Buffer.from('last'))
    stream.end()
    if (opensFirst) open()
    await later()
    t.same(heard, opensFirst ? ['first'] : [])
    release()
    await later()
    if (!opensFirst) open()
    await later()
    t.same(heard, ['first', 'last', 'finish'])
  }
})

void t.test('one that has left gets nothing', async (t) => {
  const { stream, heard, open, release } = await stage(t)
  open()
  stream.write(Buffer.from('last'))
  stream.destroy()
  release()
  await later()
  t.same(heard, [])
})

void t.test(
  'a failure after a part gives what there is, and then only says that it failed',
  async (t) => {
    const { stream, heard, open } = await stage(t)
    open()
    let failed = 0
    stream.on('failed', () => (failed += 1))
    stream.write(Buffer.from('first'))
    stream.fail({ kind: 'upstream_timeout', message: 'late' })
    stream.write(Buffer.from('second'))
    stream.end()
    await later()
    t.same([heard[0], failed, stream.translation.outcome], ['first', 1, 'failed'])
    t.notOk(heard.includes('second'))
  },
)

void t.test('an end that comes too early is a failure of the upstream', async (t) => {
  const { stream, open } = await stage(t)
  open()
  stream.write(Buffer.from('first'))
  stream.end()
  await later()
  t.equal(stream.translation.error?.kind, 'upstream_truncated')
})

void t.test(
  'a reader that is behind makes the source wait, and a reply that nobody reads goes on',
  async (t) => {
    const { stream } = await stage(t)
    let drained = 0
    stream.onDrain = () => (drained += 1)
    const chunk = Buffer.alloc(10_000, 'x')
    let written = 0
    while (stream.write(chunk)) written += 1
    t.ok(written < 8, `${written} chunks before it asks for a pause`)
    await later()
    t.equal(drained, 0, 'it waits for its reader')
    stream.drain()
    await later()
    t.ok(drained > 0, 'what is dropped makes room')
    t.ok(stream.write(Buffer.from('more')))
  },
)
