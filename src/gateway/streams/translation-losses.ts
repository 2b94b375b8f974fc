/**
 * What a translation could not carry, gathered for the response header, the log and the metric.
 * Knows no dialect's words; the codecs report paths.
 */
import type { ChatRequest } from '../../chat/request.js'
import type { DialectName, Losses } from '../../dialects/dialect.js'
import { EGRESSES } from '../../dialects/index.js'
import { ordinaryModel, reportNative } from '../../dialects/other-format.js'
import { GatewayError } from '../../errors.js'

/** More than a request with every field that some dialect lacks has. */
const MAX_LOSSES = 32
/** A path that a header and a log can hold: the path of a field nobody knows is the client's own text. */
const PLAIN_PATH = /^[\w$.[\]-]{1,80}$/

/** Each path once, in the order of the reports, and no more than a header has room for. */
export class LossList implements Losses {
  private found: Set<string> | null = null

  drop(path: string): void {
    this.found ??= new Set()
    if (this.found.size < MAX_LOSSES) this.found.add(PLAIN_PATH.test(path) ? path : 'other')
  }

  /** The paths; empty where nothing was lost. */
  get paths(): readonly string[] {
    return this.found === null ? NONE : [...this.found]
  }
}

const NONE: readonly string[] = []

/** The refusal of `on_loss: reject`: all that would be lost, and which dialects would take it. */
export function lossRefusal(
  request: ChatRequest,
  client: DialectName,
  lost: readonly string[],
): GatewayError {
  const [first = ''] = lost
  const accepting = dialectsThatAccept(request, client, lost)
  const instead =
    accepting.length === 0
      ? 'no dialect takes all of them'
      : `ask for a model of an upstream whose dialect takes them: ${accepting.join(', ')}`
  return new GatewayError(
    'untranslatable',
    `This model’s provider cannot take: ${lost.join(', ')}. Leave them out, or ${instead}.`,
    { param: first },
  )
}

/** The dialects that would carry every one of these fields, asked by letting each try. */
function dialectsThatAccept(
  request: ChatRequest,
  client: DialectName,
  lost: readonly string[],
): DialectName[] {
  // What embeddings may lose are fields of one provider.
  if (request.embedding !== undefined) return []
  return EGRESSES.flatMap(({ dialect, egress }) => {
    const facts = ordinaryModel(request.model, dialect)
    const losses = new LossList()
    try {
      if (dialect !== client) reportNative(request, losses)
      egress.encodeRequest(request, facts, losses)
    } catch (error) {
      if (error instanceof GatewayError) return []
      throw error
    }
    return losses.paths.some((path) => lost.includes(path)) ? [] : [dialect]
  })
}
