/**
 * Goal: only the end of a reply waits for its ledger entry; a part of a reply, a failure and a client that
 * left each end correctly.
 * Method: a translation that passes text on and waits at its last chunk; a reader that records the output and
 * is attached before, during and after it.
 */
import t from 'tap'
import { ReplyTransform } from '../../../src/gateway/streams/reply-transform.js'
import { PassthroughStream } from '../../../src/gateway/streams/passthrough-stream.js'
import { upstreamCodecOf } from '../../../src/formats/index.js'

interface Stage {
  readonly stream: ReplyTransform
  readonly received: string[]
  readonly open: () => void
  readonly release: () => void
}

function stage(): Stage {
  let held: Promise<void> | null = null
  const watcher = upstreamCodecOf('openai-chat')?.newWatcher?.({ includeUsage: false })
  if (watcher === undefined) throw new Error('chat completions cannot pass')
  const translation = new PassthroughStream(watcher)
  let release = (): void => undefined
  translation.write = (chunk) => {
    if (translation.outcome !== 'open') return ''
    if (chunk.includes('last')) {
      translation.outcome = 'complete'
      held = new Promise<void>((resolve) => (release = resolve))
    }
    return chunk
  }
  const stream = new ReplyTransform(translation, {
    ending: () => held,
    threw: () => undefined,
    translated: () => undefined,
  })
  const received: string[] = []
  const open = (): void => {
    stream.on('data', (chunk: Buffer) => received.push(chunk.toString()))
    stream.on('end', () => received.push('finish'))
  }
  return { stream, received, open, release: () => release() }
}

const later = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

void t.test('only the last chunk waits, and the end with it', async (t) => {
  const { stream, received, open, release } = stage()
  open()
  stream.write(Buffer.from('first'))
  t.same(received, ['first'], 'at once')
  stream.write(Buffer.from('last'))
  stream.end()
  await later()
  t.same(received, ['first'])
  release()
  await later()
  t.same(received, ['first', 'last', 'finish'])
})

void t.test('a client that starts to read meanwhile, or later, gets all output in order', async (t) => {
  for (const opensFirst of [true, false]) {
    const { stream, received, open, release } = stage()
    stream.write(Buffer.from('first'))
    stream.write(Buffer.from('last'))
    stream.end()
    if (opensFirst) open()
    await later()
    t.same(received, opensFirst ? ['first'] : [])
    release()
    await later()
    if (!opensFirst) open()
    await later()
    t.same(received, ['first', 'last', 'finish'])
  }
})

void t.test('a removed item is not visited', async (t) => {
  const { stream, received, open, release } = stage()
  open()
  stream.write(Buffer.from('last'))
  stream.destroy()
  release()
  await later()
  t.same(received, [])
})

void t.test('a failure after a part passes the output so far, and then emits only the failure', async (t) => {
  const { stream, received, open } = stage()
  open()
  let failed = 0
  stream.on('failed', () => (failed += 1))
  stream.write(Buffer.from('first'))
  stream.fail({ kind: 'upstream_timeout', message: 'late' })
  stream.write(Buffer.from('second'))
  stream.end()
  await later()
  t.same([received[0], failed, stream.translation.outcome], ['first', 1, 'failed'])
  t.notOk(received.includes('second'))
})

void t.test('a premature end is a failure of the upstream', async (t) => {
  const { stream, open } = stage()
  open()
  stream.write(Buffer.from('first'))
  stream.end()
  await later()
  t.equal(stream.translation.error?.kind, 'upstream_truncated')
})

void t.test('a slow reader makes the source wait, and a reply without a reader continues', async (t) => {
  const { stream } = stage()
  let drained = 0
  stream.onDrain = () => (drained += 1)
  const chunk = Buffer.alloc(10_000, 'x')
  let written = 0
  while (stream.write(chunk)) written += 1
  t.ok(written < 8, `${written} chunks before the source pauses`)
  await later()
  t.equal(drained, 0, 'it waits for its reader')
  stream.drain()
  await later()
  t.ok(drained > 0, 'dropped entries make room')
  t.ok(stream.write(Buffer.from('more')))
})

void t.test('a last event without its blank line is separated from the next one', (t) => {
  const watcher = upstreamCodecOf('openai-chat')?.newWatcher?.({ includeUsage: false })
  if (watcher === undefined) throw new Error('chat completions cannot pass')
  const stream = new PassthroughStream(watcher)
  const event = 'data: {"choices":[{"index":0,"delta":{"content":"Hi"}}]}'
  const passed = [stream.write(Buffer.from(event)), stream.end()].map(String).join('')
  t.equal(passed, `${event}\n\n`)
  t.equal(stream.outcome, 'failed', 'the stream is cut')
  t.end()
})
