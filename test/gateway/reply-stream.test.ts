/**
 * Goal: the end of an answer waits for what must be done before it, and nothing else of it does.
 * Method: a translation that passes text on and asks for the wait at its last piece; a client's side that
 * writes down what it gets, opened before, meanwhile and after.
 */
import t, { type Test } from 'tap'
import { loadConfig } from '../../src/config/load.js'
import { createSnapshot } from '../../src/config/snapshot.js'
import { Exchange } from '../../src/gateway/exchange.js'
import { Generation } from '../../src/gateway/generation.js'
import { ReplyStream } from '../../src/gateway/reply-stream.js'
import { PassedStream } from '../../src/gateway/passed.js'
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
  readonly stream: ReplyStream
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
    if (chunk.includes('last')) {
      translation.outcome = 'complete'
      x.holding = new Promise((resolve) => (release = resolve))
    }
    return chunk
  }
  const stream = new ReplyStream(translation, x)
  const heard: string[] = []
  const sink = {
    take: (piece: string | Buffer): boolean => {
      heard.push(piece.toString())
      return true
    },
    finish: (): void => void heard.push('finish'),
  }
  return { stream, heard, open: () => stream.open(sink), release: () => release() }
}

const later = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

void t.test('only the last piece waits, and the end with it', async (t) => {
  const { stream, heard, open, release } = await stage(t)
  open()
  stream.write(Buffer.from('first'), 0)
  t.same(heard, ['first'], 'at once')
  stream.write(Buffer.from('last'), 0)
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
    stream.write(Buffer.from('first'), 0)
    stream.write(Buffer.from('last'), 0)
    stream.end()
    if (opensFirst) open()
    await later()
    t.same(heard, [])
    release()
    await later()
    if (!opensFirst) open()
    t.same(heard, ['first', 'last', 'finish'])
  }
})

void t.test('one that has left gets nothing', async (t) => {
  const { stream, heard, open, release } = await stage(t)
  open()
  stream.write(Buffer.from('last'), 0)
  stream.destroy()
  release()
  await later()
  t.same(heard, [])
})
