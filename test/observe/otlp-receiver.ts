/** An OTLP receiver for traces over HTTP: decodes protobuf and JSON, and replies as a test configures. */
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { gunzipSync } from 'node:zlib'
import type { Test } from 'tap'
import { until } from '../helpers/upstream.js'

export type Value = string | number | boolean | readonly Value[]
export type Values = Readonly<Record<string, Value>>

/** A received span. Times are in ms since 1970. */
export interface ReceivedSpan {
  readonly resource: Values
  readonly traceId: string
  readonly spanId: string
  /** Empty for a root. */
  readonly parentSpanId: string
  readonly traceState: string
  readonly name: string
  /** 2 server, 3 client. */
  readonly kind: number
  readonly startMs: number
  readonly endMs: number
  readonly attributes: Values
  readonly events: readonly {
    readonly name: string
    readonly atMs: number
    readonly attributes: Values
  }[]
  /** 0 unset, 2 error. */
  readonly status: number
}

/** A running receiver. */
export interface OtlpReceiver {
  readonly url: string
  readonly spans: ReceivedSpan[]
  readonly requests: {
    readonly path: string
    readonly headers: IncomingHttpHeaders
    readonly text: string
  }[]
  /** The status of its replies from now on. */
  status: number
  /** Resolves with the spans of a trace when `count` of them have arrived; the server span is first. */
  trace(traceId: string, count: number): Promise<ReceivedSpan[]>
}

/** Starts it on a free port; it ends with the test. */
export async function startOtlpReceiver(t: Test): Promise<OtlpReceiver> {
  const server = createServer((req, res) => {
    void buffer(req).then((raw) => {
      const body = req.headers['content-encoding'] === 'gzip' ? gunzipSync(raw) : raw
      receiver.requests.push({
        path: req.url ?? '',
        headers: req.headers,
        text: body.toString('utf8'),
      })
      const isJson = (req.headers['content-type'] ?? '').includes('json')
      const spans = isJson ? spansOfJson(body.toString('utf8')) : spansOfProtobuf(body)
      if (receiver.status === 200) receiver.spans.push(...spans)
      res.writeHead(receiver.status, {
        'content-type': isJson ? 'application/json' : 'application/x-protobuf',
      })
      res.end(isJson ? '{}' : '')
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    return new Promise<void>((resolve) => void server.close(() => resolve()))
  })
  const { port } = server.address() as AddressInfo
  const receiver: OtlpReceiver = {
    url: `http://127.0.0.1:${port}`,
    spans: [],
    requests: [],
    status: 200,
    async trace(traceId, count) {
      const found = (): ReceivedSpan[] => receiver.spans.filter((span) => span.traceId === traceId)
      await until(() => found().length >= count)
      return found().sort((a, b) => a.kind - b.kind || a.startMs - b.startMs)
    },
  }
  return receiver
}

/** The JSON form, as far as spans need it. */
interface JsonAttribute {
  readonly key: string
  readonly value: JsonValueOf
}

interface JsonValueOf {
  readonly stringValue?: string
  readonly intValue?: number | string
  readonly doubleValue?: number
  readonly boolValue?: boolean
  readonly arrayValue?: { readonly values?: readonly JsonValueOf[] }
}

interface JsonSpan {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly traceState?: string
  readonly name: string
  readonly kind: number
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
  readonly attributes?: readonly JsonAttribute[]
  readonly events?: readonly {
    readonly name: string
    readonly timeUnixNano: string
    readonly attributes?: readonly JsonAttribute[]
  }[]
  readonly status?: { readonly code?: number }
}

interface JsonTraces {
  readonly resourceSpans: readonly {
    readonly resource?: { readonly attributes?: readonly JsonAttribute[] }
    readonly scopeSpans: readonly { readonly spans: readonly JsonSpan[] }[]
  }[]
}

function spansOfJson(text: string): ReceivedSpan[] {
  const { resourceSpans } = JSON.parse(text) as JsonTraces
  return resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) =>
      spans.map((span) => ({
        resource: valuesOf(resource?.attributes),
        traceId: span.traceId,
        spanId: span.spanId,
        parentSpanId: span.parentSpanId ?? '',
        traceState: span.traceState ?? '',
        name: span.name,
        kind: span.kind,
        startMs: Number(BigInt(span.startTimeUnixNano) / 1000n) / 1000,
        endMs: Number(BigInt(span.endTimeUnixNano) / 1000n) / 1000,
        attributes: valuesOf(span.attributes),
        events: (span.events ?? []).map(({ name, timeUnixNano, attributes }) => ({
          name,
          atMs: Number(BigInt(timeUnixNano) / 1000n) / 1000,
          attributes: valuesOf(attributes),
        })),
        status: span.status?.code ?? 0,
      })),
    ),
  )
}

function valuesOf(attributes: readonly JsonAttribute[] = []): Values {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, valueOf(value)]))
}

function valueOf(value: JsonValueOf): Value {
  const { stringValue, intValue, doubleValue, boolValue, arrayValue } = value
  if (arrayValue !== undefined) return (arrayValue.values ?? []).map(valueOf)
  return stringValue ?? boolValue ?? doubleValue ?? Number(intValue)
}

/** The fields of a protobuf message by number: integers and fixed numbers as `bigint`, the rest as bytes. */
type Fields = ReadonlyMap<number, readonly (bigint | Buffer)[]>

function fieldsOf(bytes: Buffer): Fields {
  const fields = new Map<number, (bigint | Buffer)[]>()
  let at = 0
  const varint = (): bigint => {
    let value = 0n
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes.readUInt8(at)
      at += 1
      value |= BigInt(byte & 0x7f) << shift
      if (byte < 0x80) return value
    }
  }
  while (at < bytes.length) {
    const tag = Number(varint())
    const [number, wire] = [tag >> 3, tag & 7]
    const values = fields.get(number) ?? []
    fields.set(number, values)
    if (wire === 0) values.push(varint())
    else if (wire === 1) {
      values.push(bytes.readBigUInt64LE(at))
      at += 8
    } else if (wire === 2) {
      const length = Number(varint())
      values.push(bytes.subarray(at, at + length))
      at += length
    } else if (wire === 5) {
      values.push(BigInt(bytes.readUInt32LE(at)))
      at += 4
    } else throw new Error(`protobuf wire type ${wire}`)
  }
  return fields
}

function messages(fields: Fields, number: number): Fields[] {
  return (fields.get(number) ?? []).map((value) => fieldsOf(bytesOf(value)))
}

function bytesOf(value: bigint | Buffer | undefined): Buffer {
  return Buffer.isBuffer(value) ? value : Buffer.alloc(0)
}

function textOf(fields: Fields, number: number, encoding: BufferEncoding = 'utf8'): string {
  return bytesOf(fields.get(number)?.[0]).toString(encoding)
}

function numberOf(fields: Fields, number: number): bigint {
  const value = fields.get(number)?.[0] ?? 0n
  return typeof value === 'bigint' ? value : 0n
}

/** After opentelemetry/proto/trace/v1/trace.proto and common/v1/common.proto. */
function spansOfProtobuf(bytes: Buffer): ReceivedSpan[] {
  return messages(fieldsOf(bytes), 1).flatMap((resourceSpans) => {
    const [resource = new Map<number, Buffer[]>()] = messages(resourceSpans, 1)
    return messages(resourceSpans, 2).flatMap((scope) =>
      messages(scope, 2).map((span) => ({
        resource: attributesOf(resource, 1),
        traceId: textOf(span, 1, 'hex'),
        spanId: textOf(span, 2, 'hex'),
        traceState: textOf(span, 3),
        parentSpanId: textOf(span, 4, 'hex'),
        name: textOf(span, 5),
        kind: Number(numberOf(span, 6)),
        startMs: Number(numberOf(span, 7) / 1000n) / 1000,
        endMs: Number(numberOf(span, 8) / 1000n) / 1000,
        attributes: attributesOf(span, 9),
        events: messages(span, 11).map((event) => ({
          name: textOf(event, 2),
          atMs: Number(numberOf(event, 1) / 1000n) / 1000,
          attributes: attributesOf(event, 3),
        })),
        status: Number(numberOf(messages(span, 15)[0] ?? new Map<number, Buffer[]>(), 3)),
      })),
    )
  })
}

function attributesOf(fields: Fields, number: number): Values {
  return Object.fromEntries(
    messages(fields, number).map((each) => [textOf(each, 1), anyOf(bytesOf(each.get(2)?.[0]))]),
  )
}

function anyOf(bytes: Buffer): Value {
  const fields = fieldsOf(bytes)
  if (fields.has(1)) return textOf(fields, 1)
  if (fields.has(2)) return numberOf(fields, 2) === 1n
  if (fields.has(3)) return Number(BigInt.asIntN(64, numberOf(fields, 3)))
  if (fields.has(4)) {
    const raw = Buffer.alloc(8)
    raw.writeBigUInt64LE(numberOf(fields, 4))
    return raw.readDoubleLE()
  }
  const list = fieldsOf(bytesOf(fields.get(5)?.[0]))
  return (list.get(1) ?? []).map((each) => anyOf(bytesOf(each)))
}
