/**
 * Checks properties for every client format over every upstream dialect: a truncated stream never looks
 * complete, chunk boundaries have no effect, and no bytes make a translation throw, hang or report a false
 * result. Each day has a twentieth of the prefixes, boundaries and corruptions, the long suite all. The
 * caller defines a complete stream of the client format.
 */
import type { Test } from 'tap'
import type { ChatRequest } from '../../../src/formats/chat/request.js'
import type { DialectName, Endpoint, ClientCodec } from '../../../src/formats/dialect.js'
import { clientCodecOf } from '../../../src/formats/index.js'
import type { JsonObject } from '../../../src/base/json.js'
import { PassthroughStream } from '../../../src/gateway/streams/passthrough-stream.js'
import { TranslatedStream, type Translation } from '../../../src/formats/translated-stream.js'
import { isToday } from '../../helpers/long-suite.js'
import { corrupt } from '../damage-bytes.js'
import {
  difference,
  framesOf,
  run,
  SEED,
  singly,
  transcripts,
  upstream,
  seededRoll,
  type Pair,
} from '../transcript-streams.js'

/** A client format under test. */
export interface ClientCase {
  readonly dialect: DialectName
  /** A request for a stream. */
  readonly body: JsonObject
  readonly endpoint: Endpoint
  /** Whether a client accepts the output as a complete reply. */
  readonly claims: (frames: readonly string[]) => boolean
}

const UPSTREAMS: readonly DialectName[] = ['openai-chat', 'openai-responses', 'anthropic', 'gemini']

/** Number of corruptions for each pair. */
const CORRUPTIONS = Number(process.env['SLUICE_CLIENT_CORRUPTIONS'] ?? 4_000)

/** The finish reasons of upstreams, in all dialects. */
const REASON =
  /"(?:finish_reason|stop_reason|finishReason|blockReason)"\s*:\s*["\d]|"type"\s*:\s*"response\.(?:completed|incomplete)"/

/** Every upstream dialect for this client: translated, and passed through if both use the same dialect. */
export function pairsOf(clientCase: ClientCase): Pair[] {
  const clientCodec: ClientCodec = clientCodecOf(clientCase.dialect)
  const request: ChatRequest = clientCodec.decodeRequest(clientCase.body, clientCase.endpoint)
  const translated = UPSTREAMS.map((dialect): Pair => {
    const open = (): Translation =>
      new TranslatedStream({
        upstreamCodec: upstream(dialect),
        clientCodec,
        request,
        seed: { ...SEED, origin: dialect },
      })
    return { name: `${clientCase.dialect} ← ${dialect}`, dialect, passes: false, open }
  })
  const { newWatcher } = upstream(clientCase.dialect)
  if (newWatcher === null) return translated
  const open = (): Translation => new PassthroughStream(newWatcher({ includeUsage: true }))
  return [
    ...translated,
    { name: `${clientCase.dialect} passed`, dialect: clientCase.dialect, passes: true, open },
  ]
}

/** Adds a subtest for each property and pair. */
export function checkClient(t: Test, clientCase: ClientCase): void {
  for (const pair of pairsOf(clientCase)) {
    const streams = transcripts.filter(({ dialect }) => dialect === pair.dialect)
    void t.test(`${pair.name}: a prefix never looks complete`, (t) => {
      for (const { name, bytes } of streams) {
        let wrong: string | null = null
        for (let cut = 0; cut <= bytes.length; cut += 3) {
          if (isToday(cut / 3)) wrong ??= prefixFault(clientCase, pair, bytes.subarray(0, cut))
        }
        t.equal(wrong ?? prefixFault(clientCase, pair, bytes), null, name)
      }
      t.end()
    })
    void t.test(`${pair.name}: the client gets the same bytes for all chunk boundaries`, (t) => {
      for (const { name, bytes } of streams) {
        const whole = run(pair, [bytes])
        let wrong = difference(run(pair, singly(bytes)), whole)
        for (let index = 1; index < bytes.length && wrong === ''; index += 5) {
          if (!isToday((index - 1) / 5)) continue
          wrong = difference(run(pair, [bytes.subarray(0, index), bytes.subarray(index)]), whole)
        }
        t.equal(wrong, '', name)
      }
      t.end()
    })
    void t.test(`${pair.name}: ${CORRUPTIONS} corruptions`, (t) => {
      const bytes = streams.map((each) => each.bytes)
      const seen = { complete: 0, failed: 0, open: 0 }
      for (let seed = 0; seed < CORRUPTIONS; seed += 1) {
        if (!isToday(seed)) continue
        const wrong = corruptionFault(clientCase, pair, {
          bytes: corrupt(bytes, seededRoll(seed)),
          seen,
        })
        if (wrong !== null) t.fail(`seed ${seed}: ${wrong}`)
      }
      t.equal(seen.open, 0)
      t.ok(seen.complete > 0 && seen.failed > 0, JSON.stringify(seen))
      t.end()
    })
  }
}

function prefixFault(clientCase: ClientCase, pair: Pair, bytes: Buffer): string | null {
  const { out, outcome, kind, reason } = run(pair, [bytes])
  const place = `after ${bytes.length} bytes: `
  const claims = clientCase.claims(framesOf(out))
  if (outcome === 'open') return `${place}still open`
  if (outcome === 'failed') {
    if (kind === null) return `${place}failed without an error`
    return claims && !pair.passes ? `${place}failed, and looks complete` : null
  }
  if (kind !== null || reason === null) return `${place}complete with ${kind ?? 'no reason'}`
  if (!REASON.test(bytes.toString('latin1'))) return `${place}complete without a reason`
  return claims ? null : `${place}complete, but the frames for the client do not show it`
}

function corruptionFault(
  clientCase: ClientCase,
  pair: Pair,
  { bytes, seen }: { bytes: Buffer; seen: Record<Translation['outcome'], number> },
): string | null {
  const { out, outcome, kind } = run(pair, [bytes])
  seen[outcome] += 1
  if ((outcome === 'failed') !== (kind !== null)) return 'both or neither'
  if (pair.passes) return null
  const frames = framesOf(out)
  if (!frames.every(isReadable)) return 'a frame is not JSON'
  if (outcome === 'failed') return clientCase.claims(frames) ? 'failed, and looks complete' : null
  return clientCase.claims(frames) ? null : 'complete, but the frames for the client do not show it'
}

function isReadable(data: string): boolean {
  try {
    JSON.parse(data)
    return true
  } catch {
    return data === '[DONE]'
  }
}
