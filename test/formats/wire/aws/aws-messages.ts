/** Messages of Bedrock's event streams, encoded by AWS's own library. */
import { EventStreamCodec } from '@smithy/eventstream-codec'
import type { JsonObject } from '../../../../src/base/json.js'

/** AWS's codec. */
export const awsCodec = new EventStreamCodec(
  (bytes) => Buffer.from(bytes).toString('utf8'),
  (text) => Buffer.from(text),
)

/** A message with these string headers. */
export function awsMessage(headers: Readonly<Record<string, string>>, body: string): Buffer {
  const typed = Object.entries(headers).map(([name, value]) => [name, { type: 'string', value }])
  return Buffer.from(
    awsCodec.encode({
      headers: Object.fromEntries(typed) as Parameters<typeof awsCodec.encode>[0]['headers'],
      body: Buffer.from(body),
    }),
  )
}

/** An event of ConverseStream. */
export function awsEvent(name: string, payload: JsonObject): Buffer {
  const headers = {
    ':event-type': name,
    ':content-type': 'application/json',
    ':message-type': 'event',
  }
  return awsMessage(headers, JSON.stringify(payload))
}

/** A Messages event as InvokeModelWithResponseStream sends it. */
export function awsChunk(event: JsonObject): Buffer {
  const bytes = Buffer.from(JSON.stringify(event)).toString('base64')
  return awsEvent('chunk', { bytes, p: 'abcdefgh' })
}

/** An exception within a stream. */
export function awsException(name: string, payload: JsonObject): Buffer {
  const headers = {
    ':exception-type': name,
    ':content-type': 'application/json',
    ':message-type': 'exception',
  }
  return awsMessage(headers, JSON.stringify(payload))
}
