/**
 * The fields that a translation leaves out: their list, and `on_loss`, which decides whether a request that
 * loses any is sent. The functions here are the only readers of the setting's value.
 */
import { GatewayError } from '../errors.js'
import type { ChatEvent } from './chat/event.js'
import { isChat, type ChatRequest } from './chat/request.js'
import { ordinaryModel, reportNative, type DialectName, type ClientCodec, type Losses } from './dialect.js'
import { UPSTREAM_CODECS } from './index.js'

/** The value of `on_loss`: losses are reported, or the request is refused because of them. */
type OnLoss = 'report' | 'reject'

/** Whether a request that loses these fields is refused. */
export function refusesLosses(onLoss: OnLoss, lost: readonly string[]): boolean {
  return lost.length > 0 && onLoss === 'reject'
}

/** Throws `untranslatable` if a request that loses these fields is refused. */
export function assertLossesAllowed(
  onLoss: OnLoss,
  lost: readonly string[],
  { request, dialect }: { readonly request: ChatRequest; readonly dialect: DialectName },
): void {
  if (refusesLosses(onLoss, lost)) throw lossRefusal(request, dialect, lost)
}

/** Whether a request that cannot be translated is counted by estimate, because a chat reports it better. */
export function estimatesUntranslatable(onLoss: OnLoss): boolean {
  return onLoss === 'report'
}

/** Reports the part of an event that the client's format cannot represent. */
export function note(clientCodec: ClientCodec, event: ChatEvent, losses: LossList): void {
  const path = clientCodec.lossOf(event)
  if (path !== null) losses.drop(path)
}

/** Maximum number of reported paths by name, for the header. A request may list as many beta features. */
const MAX_LOSSES = 32
/** Instead of paths over the maximum, and of the client's own text. */
const OTHER = 'other'
/** A path that may appear in a header and a log: the path of an unknown field is the client's own text. */
const PLAIN_PATH = /^[\w$.[\]-]{1,80}$/

/** Each path once, in the order of the reports, up to a maximum for the header. */
export class LossList implements Losses {
  private found: Set<string> | null = null

  drop(path: string): void {
    this.found ??= new Set()
    const isNamed = this.found.size < MAX_LOSSES && PLAIN_PATH.test(path)
    if (!this.found.has(path)) this.found.add(isNamed ? path : OTHER)
  }

  /** The paths; empty if nothing was lost. */
  get paths(): readonly string[] {
    return this.found === null ? NONE : [...this.found]
  }
}

const NONE: readonly string[] = []

/** The error of `on_loss: reject`: the fields that would be lost, and the dialects that support them. */
function lossRefusal(request: ChatRequest, client: DialectName, lost: readonly string[]): GatewayError {
  const [first = ''] = lost
  const accepting = dialectsThatAccept(request, client, lost)
  const advice =
    accepting.length === 0
      ? 'Leave them out: no dialect supports all of them'
      : `Leave them out, or request a model of an upstream whose dialect takes them: ${accepting.join(', ')}`
  return new GatewayError(
    'untranslatable',
    `This model's provider cannot take: ${lost.join(', ')}. ${advice}.`,
    { param: first },
  )
}

/** The dialects that represent each of these fields, found by a trial translation into each. */
function dialectsThatAccept(
  request: ChatRequest,
  client: DialectName,
  lost: readonly string[],
): DialectName[] {
  // Fields that other requests may lose belong to one provider.
  if (!isChat(request)) return []
  return UPSTREAM_CODECS.flatMap(({ dialect, upstreamCodec }) => {
    const facts = ordinaryModel(request.model, dialect)
    const losses = new LossList()
    try {
      if (dialect !== client) reportNative(request, losses)
      upstreamCodec.encodeRequest(request, facts, losses)
    } catch (error) {
      if (error instanceof GatewayError) return []
      throw error
    }
    return losses.paths.some((path) => lost.includes(path)) ? [] : [dialect]
  })
}
