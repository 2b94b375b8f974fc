/**
 * What an upstream is to be sent: the client's own bytes with a few keys edited where both speak one
 * dialect, else the conversation said in the upstream's. Pure: the same request makes the same bytes.
 */
import type { ModelFacts } from '../chat/model.js'
import type { QuirksConfig } from '../config/config.js'
import type { DialectName, Egress, Losses } from '../dialects/dialect.js'
import { applyQuirks, quirkEdits } from '../upstreams/quirks.js'
import { splice } from '../wire/splice.js'
import type { Call } from './receive.js'

/** The upstream's side of a request. */
export interface Destination {
  readonly dialect: DialectName
  readonly egress: Egress
  readonly quirks: QuirksConfig
}

/** A body, where it goes, and the headers that depend on what it asks. */
export interface Rendered {
  /** The dialect's path, below the upstream's base. */
  readonly path: string
  readonly accept: string
  readonly body: Buffer | string
  readonly headers: Readonly<Record<string, string>>
}

/**
 * Renders the call for a model. Reports to `losses` what may be left out, throws
 * `GatewayError(untranslatable)` for what may not.
 */
export function render(
  call: Pick<Call, 'dialect' | 'raw' | 'members' | 'body' | 'request'>,
  { dialect, egress, quirks }: Destination,
  model: string,
  facts: ModelFacts,
  losses: Losses,
): Rendered {
  const report = (path: string): void => losses.drop(path, 'no-equivalent')
  if (dialect === call.dialect) {
    const edits = egress.edits(call.body, model, facts, losses)
    edits.push(...quirkEdits(call.body, edits, quirks, report))
    const body = edits.length === 0 ? call.raw : splice(call.raw, call.members, edits)
    const { path, accept } = egress.target(model, call.request.stream)
    return { path, accept, body, headers: egress.headers(call.body) }
  }
  const stream = call.request.stream || egress.streamsWhole?.(call.request, facts) === true
  const encoded = egress.encodeRequest({ ...call.request, model, stream }, facts, losses)
  const body = applyQuirks(encoded, quirks, report)
  const { path, accept } = egress.target(model, stream)
  return { path, accept, body: JSON.stringify(body), headers: egress.headers(body) }
}
