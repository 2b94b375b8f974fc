/** The codecs of OpenAI's embeddings and legacy completions, for clients and for upstreams. */
import type { UpstreamCodec, ClientCodec, FormatCodecs } from '../dialect.js'
import {
  decodeEmbeddings,
  embeddingEdits,
  encodeEmbeddings,
  encodeVectors,
  readVectors,
} from './embeddings.js'
import { upstreamCodec, clientCodec } from './index.js'
import { replyLossOf } from '../wire/reply-losses.js'
import {
  decodeCompletion,
  CompletionEncoder,
  encodeChoices,
  encodeReply,
  CompletionDecoder,
  completionEdits,
  decodeCompletionReply,
  newCompletionWatcher,
  completionFacts,
} from './completions.js'

const completionsClient: ClientCodec = {
  ...clientCodec,
  envelope: { ...clientCodec.envelope, idPrefix: 'cmpl-' },
  decodeRequest: (body) => decodeCompletion(body),
  encodeReply,
  encodeChoices,
  newEncoder: (request, seed, position) => new CompletionEncoder(request, seed, position),
  lossOf: (event) => replyLossOf('openai-completions', event),
}

const completionsUpstream: UpstreamCodec = {
  ...upstreamCodec,
  target: (_model, stream) => ({
    path: '/completions',
    accept: stream ? 'text/event-stream' : 'application/json',
  }),
  edits: (body, modelName, { losses }) => completionEdits(body, modelName, losses),
  decodeReply: decodeCompletionReply,
  newDecoder: (_request, sink) => new CompletionDecoder(sink),
  newWatcher: newCompletionWatcher,
  replyFacts: completionFacts,
}

/** `POST /v1/completions`. */
export const openaiCompletions: FormatCodecs = {
  clientCodec: completionsClient,
  upstreamCodec: completionsUpstream,
}

/** `POST /v1/embeddings`. */
export const openaiEmbeddings: FormatCodecs = {
  clientCodec: { ...clientCodec, decodeRequest: (body) => decodeEmbeddings(body), encodeVectors },
  upstreamCodec: {
    ...upstreamCodec,
    target: () => ({ path: '/embeddings', accept: 'application/json' }),
    encodeRequest: (request, _facts, losses) => encodeEmbeddings(request, losses),
    edits: (body, modelName, { losses }) => embeddingEdits(body, modelName, losses),
    readVectors,
  },
}
