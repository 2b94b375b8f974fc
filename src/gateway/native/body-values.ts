/** Reads the members of a native request's JSON body, if a dimension has its value there. */
import { Readable } from 'node:stream'
import { bodyTurns } from '../../base/turn-queue.js'
import type { JsonObject } from '../../base/json.js'
import type { DimensionConfig } from '../../config/schema/dimensions-schema.js'
import { GatewayError } from '../../errors.js'
import { parseSteps } from '../../formats/wire/json/parse-body.js'
import { headerOf } from '../../http/message.js'
import type { HeldMemory } from '../body-memory.js'
import type { Exchange } from '../client-exchange.js'

/** Whether values are found only after the body has been read. */
export function mayBeInBody({ req, upgrade }: Exchange, dimensions: readonly DimensionConfig[]): boolean {
  const isJson = /^application\/(?:[\w.-]+\+)?json(?:;|$)/i.test(headerOf(req, 'content-type') ?? '')
  if (!isJson || upgrade !== null || headerOf(req, 'content-encoding') !== undefined) return false
  return dimensions.some(({ places }) => places.some(({ kind }) => kind === 'body'))
}

/**
 * The body, and a stream of the same bytes. A body that is no JSON object has no members: the provider
 * decides what it is. Rejects if the source fails or its bytes do not fit into memory.
 */
export async function bodyMembers(
  source: Readable,
  held: HeldMemory,
): Promise<{ readonly body: JsonObject; readonly source: Readable }> {
  const chunks: Buffer[] = []
  for await (const chunk of source as AsyncIterable<Buffer>) {
    held.take(chunk.length)
    chunks.push(chunk)
  }
  const bytes = Buffer.concat(chunks)
  return { body: await objectIn(bytes), source: Readable.from([bytes], { objectMode: false }) }
}

async function objectIn(bytes: Buffer): Promise<JsonObject> {
  try {
    return (await bodyTurns.run(parseSteps(bytes))).value
  } catch (error) {
    if (error instanceof GatewayError) return {}
    throw error
  }
}
