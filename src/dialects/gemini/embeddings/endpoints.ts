/**
 * The codecs of Gemini's two embedding formats, for clients and upstreams.
 */
import type { Egress, Ingress, FormatCodecs } from '../../dialect.js'
import {
  decodeBatch,
  decodeSingle,
  embeddingEdits,
  embeddingPath,
  encodeBatch,
  encodeBatchReply,
  encodeSingleReply,
  readVectors,
} from './embeddings.js'
import { egress, ingress } from '../index.js'

function codecsOf(
  action: 'embedContent' | 'batchEmbedContents',
  parts: Pick<Ingress, 'decodeRequest' | 'encodeVectors'>,
): FormatCodecs {
  const upstream: Egress = {
    ...egress,
    target: (model) => ({ path: embeddingPath(model, action), accept: 'application/json' }),
    encodeRequest: (request, _facts, losses) => encodeBatch(request, losses),
    edits: (body, model) => embeddingEdits(body, model),
    continuation: null,
    readVectors,
  }
  return { ingress: { ...ingress, ...parts }, egress: upstream }
}

/** `:batchEmbedContents`. */
export const geminiEmbeddings = codecsOf('batchEmbedContents', {
  decodeRequest: decodeBatch,
  encodeVectors: encodeBatchReply,
})

/** `:embedContent`. */
export const geminiEmbedding = codecsOf('embedContent', {
  decodeRequest: decodeSingle,
  encodeVectors: encodeSingleReply,
})
