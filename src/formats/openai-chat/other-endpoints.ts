/** The codecs of OpenAI's embeddings and legacy completions, for clients and for upstreams. */
import type { Egress, Ingress, FormatCodecs } from '../dialect.js'
import {
  decodeEmbeddings,
  embeddingEdits,
  encodeEmbeddings,
  encodeVectors,
  readVectors,
} from './embeddings.js'
import { egress, ingress } from './index.js'
import { replyLossOf } from '../wire/reply-losses.js'
import {
  decodeCompletion,
  CompletionEncoder,
  encodeChoices,
  encodeReply,
  CompletionDecoder,
  completionEdits,
  decodeCompletionReply,
  newCompletionTap,
  tapCompletion,
} from './completions.js'

const completionsIngress: Ingress = {
  ...ingress,
  envelope: { ...ingress.envelope, idPrefix: 'cmpl-' },
  decodeRequest: (body) => decodeCompletion(body),
  encodeReply,
  encodeChoices,
  newEncoder: (request, seed, position) => new CompletionEncoder(request, seed, position),
  lossOf: (event) => replyLossOf('openai-completions', event),
}

const completionsEgress: Egress = {
  ...egress,
  target: (_model, stream) => ({
    path: '/completions',
    accept: stream ? 'text/event-stream' : 'application/json',
  }),
  edits: (body, modelName, { losses }) => completionEdits(body, modelName, losses),
  decodeReply: decodeCompletionReply,
  newDecoder: (request, sink) => new CompletionDecoder(request, sink),
  newTap: newCompletionTap,
  tapReply: tapCompletion,
}

/** `POST /v1/completions`. */
export const openaiCompletions: FormatCodecs = {
  ingress: completionsIngress,
  egress: completionsEgress,
}

/** `POST /v1/embeddings`. */
export const openaiEmbeddings: FormatCodecs = {
  ingress: { ...ingress, decodeRequest: (body) => decodeEmbeddings(body), encodeVectors },
  egress: {
    ...egress,
    target: () => ({ path: '/embeddings', accept: 'application/json' }),
    encodeRequest: (request, _facts, losses) => encodeEmbeddings(request, losses),
    edits: (body, modelName, { losses }) => embeddingEdits(body, modelName, losses),
    readVectors,
  },
}
