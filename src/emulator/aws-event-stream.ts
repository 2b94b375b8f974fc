/**
 * Writes the binary messages of Bedrock's streams, and splits recorded ones into messages.
 */
import { crc32 } from 'node:zlib'
import type { JsonObject } from '../base/json.js'

/** The media type of such a stream. */
export const AWS_EVENT_STREAM = 'application/vnd.amazon.eventstream'

/** The code of a header whose value is a string. */
const STRING = 7

export function awsEvent(name: string, payload: JsonObject | string): Buffer {
  const body = typeof payload === 'string' ? payload : JSON.stringify(payload)
  return awsMessage({ ':event-type': name, ...JSON_TYPE, ':message-type': 'event' }, body)
}

/** An exception, which ends a stream. */
export function awsException(name: string, message: string): Buffer {
  const headers = { ':exception-type': name, ...JSON_TYPE, ':message-type': 'exception' }
  return awsMessage(headers, JSON.stringify({ message }))
}

const JSON_TYPE = { ':content-type': 'application/json' }

function awsMessage(headers: Readonly<Record<string, string>>, body: string): Buffer {
  const head = Buffer.concat(
    Object.entries(headers).map(([name, value]) => {
      const size = Buffer.alloc(3)
      size.writeUInt8(STRING)
      size.writeUInt16BE(Buffer.byteLength(value), 1)
      return Buffer.concat([Buffer.of(name.length), Buffer.from(name), size, Buffer.from(value)])
    }),
  )
  const payload = Buffer.from(body)
  const message = Buffer.alloc(16 + head.length + payload.length)
  message.writeUInt32BE(message.length)
  message.writeUInt32BE(head.length, 4)
  message.writeUInt32BE(crc32(message.subarray(0, 8)), 8)
  head.copy(message, 12)
  payload.copy(message, 12 + head.length)
  message.writeUInt32BE(crc32(message.subarray(0, -4)), message.length - 4)
  return message
}

/** The messages of a stream, by their lengths alone; an incomplete one at the end is kept unchanged. */
export function messagesIn(stream: Buffer): Buffer[] {
  const messages: Buffer[] = []
  for (let at = 0; at < stream.length;) {
    const length = at + 4 <= stream.length ? stream.readUInt32BE(at) : stream.length
    const end = Math.min(stream.length, at + Math.max(16, length))
    messages.push(stream.subarray(at, end))
    at = end
  }
  return messages
}
