/**
 * Applies the faults that change the content of a reply. Faults of timing and of the connection are in
 * `delay-and-cut-faults.ts`.
 */
import { gzipSync } from 'node:zlib'
import { AWS_EVENT_STREAM } from '../aws-event-stream.js'
import { modeOf } from './fault-table.js'
import { isObject, objectOf } from '../../base/json.js'
import type { JsonObject, JsonValue } from '../../base/json.js'
import type { Provider, Reply, FrameWriter } from '../emulated-exchange.js'
import type { Fault } from './fault-table.js'

/** A reply ready to be sent. `units` may contain bytes that are not text. */
export interface Plan {
  status: number
  headers: Record<string, string>
  units: (string | Buffer)[]
  readonly stream: boolean
  terminators: number
}

/** The provider whose format the reply has. */
interface ReplyFormat {
  readonly provider: Provider
  readonly frames: FrameWriter
}

/** The reply with every content fault applied, in the order given. */
export function applyFaults(reply: Reply, faults: readonly Fault[], format: ReplyFormat): Plan {
  let plan = planOf(reply)
  for (const fault of faults) {
    if (fault.kind === 'whole' && reply.whole !== undefined) {
      plan = planOf(reply.whole())
    } else {
      apply(plan, fault, format)
    }
  }
  return plan
}

function planOf(reply: Reply): Plan {
  const { status, headers, units, stream, terminators } = reply
  return { status, headers: { ...headers }, units: [...units], stream, terminators }
}

function apply(plan: Plan, fault: Fault, format: ReplyFormat): void {
  const { frames } = format
  switch (fault.kind) {
    case 'status':
      return fail(plan, fault, format)
    case 'error':
      plan.units = [...plan.units.slice(0, fault.event ?? 0), frames.errorEvent(fault.type)]
      return
    case 'garbage':
      return insert(plan, fault.event, garbage(fault, frames))
    case 'unknown':
      return insert(plan, fault.event, frames.unknownEvent())
    case 'giant':
      return insert(plan, 1, frames.textEvent('x'.repeat(fault.bytes ?? 1024 * 1024)))
    case 'unterminated':
      plan.units = plan.units.slice(0, Math.max(0, plan.units.length - plan.terminators))
      plan.terminators = 0
      return
    case 'usage':
      plan.units = plan.units.flatMap((unit) => withAlteredUsage(unit, modeOf(fault)))
      return
    case 'silent':
      return applySilence(plan, modeOf(fault), frames)
    case 'html':
      plan.headers = { 'content-type': 'text/html; charset=utf-8' }
      plan.units = [PAGE]
      return
    case 'gzip':
      plan.headers['content-encoding'] = 'gzip'
      plan.units = [gzipSync(Buffer.concat(plan.units.map((unit) => Buffer.from(unit))))]
      return
    case 'empty':
      Object.assign(plan, { status: 204, headers: {}, units: [] })
      return
    case 'redirect':
      plan.status = fault.code ?? 302
      plan.headers = { location: fault.to ?? 'http://127.0.0.1:9/elsewhere' }
      plan.units = []
      return
    case 'untyped':
      plan.headers = Object.fromEntries(
        Object.entries(plan.headers).filter(([name]) => name !== 'content-type'),
      )
      return
    default:
      return
  }
}

const PAGE =
  '<!DOCTYPE html>\n<html><head><title>Error</title></head><body><h1>Something is in the way</h1></body></html>\n'

function insert(plan: Plan, event: number | undefined, unit: string | Buffer): void {
  plan.units.splice(Math.min(event ?? 0, plan.units.length), 0, unit)
}

function garbage(fault: Fault, frames: FrameWriter): string | Buffer {
  return modeOf(fault) === 'bytes'
    ? Buffer.from([0xff, 0xfe, 0x00, 0xc3, 0x28, 0x0a, 0x0a])
    : frames.frame('{"broken": [1, 2')
}

function applySilence(plan: Plan, mode: string, frames: FrameWriter): void {
  plan.units =
    mode === 'comments' && frames.streamHeaders['content-type'] !== AWS_EVENT_STREAM
      ? [': nothing\n\n', ': still nothing\n\n']
      : mode !== 'nothing'
        ? [frames.ping(), frames.ping()]
        : []
  plan.terminators = 0
}

function fail(plan: Plan, fault: Fault, { frames, provider }: ReplyFormat): void {
  const code = fault.code ?? 500
  const mode = modeOf(fault)
  plan.status = code
  plan.terminators = 0
  plan.headers = { ...(mode === 'html' ? { 'content-type': 'text/html' } : frames.wholeHeaders) }
  for (const name of ['retry-after', 'retry-after-ms'] as const) {
    const value = fault[name]
    if (value !== undefined) {
      plan.headers[name] = value
    }
  }
  if (mode === 'empty') {
    plan.units = []
  } else if (mode === 'html') {
    plan.units = [PAGE]
  } else {
    const body = frames.errorBody(code, `Emulated failure with status ${code}.`, fault.type)
    plan.units = [provider === 'gemini' ? withRetryInfo(body, fault['retry-info']) : body]
  }
}

function withRetryInfo(body: string, delay: string | undefined): string {
  if (delay === undefined) {
    return body
  }
  const parsed: unknown = JSON.parse(body)
  const info = { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: delay }
  const error = { ...objectOf(objectOf(parsed).error), details: [info] }
  return `${JSON.stringify({ error }, undefined, 2)}\n`
}

/** Alters the token counts of a unit; a unit without counts is unchanged. */
function withAlteredUsage(unit: string | Buffer, mode: string): (string | Buffer)[] {
  if (typeof unit !== 'string' || !/"usage(Metadata)?"/.test(unit)) {
    return [unit]
  }
  const from = unit.indexOf('{')
  const to = unit.lastIndexOf('}') + 1
  const parsed: unknown = JSON.parse(unit.slice(from, to))
  const changed = alterUsage(objectOf(parsed), mode)
  const again = `${unit.slice(0, from)}${JSON.stringify(changed)}${unit.slice(to)}`
  const onlyUsage = isObject(parsed) && Array.isArray(parsed.choices) && parsed.choices.length === 0
  if (mode === 'missing' && onlyUsage) {
    return []
  }
  return mode === 'twice' && (onlyUsage || /"message_delta"/.test(unit)) ? [unit, again] : [again]
}

function alterUsage(object: JsonObject, mode: string): JsonObject {
  const result: JsonObject = {}
  for (const [key, value] of Object.entries(object)) {
    const counts = key === 'usage' || key === 'usageMetadata'
    if (!counts) {
      result[key] = key === 'message' && isObject(value) ? alterUsage(value, mode) : value
    } else if (mode !== 'missing' && value !== null && value !== undefined) {
      result[key] = mode === 'null' ? null : numbers(value, mode)
    }
  }
  return result
}

function numbers(value: JsonValue, mode: string): JsonValue {
  if (typeof value === 'number') {
    return mode === 'negative' ? -7 : mode === 'huge' ? 1e18 : value + 1
  }
  if (!isObject(value)) {
    return value
  }
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [
      key,
      inner === undefined ? undefined : numbers(inner, mode),
    ]),
  )
}
