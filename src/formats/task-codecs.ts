/** The codecs of tasks: what their formats say, and for the rest OpenAI's. */
import type { TaskFormat, ClientCodec, FormatCodecs, TaskForm, UpstreamCodec } from './dialect.js'
import { decodeModeration, moderationModelOf } from './moderations/decode-request.js'
import { encodeVerdicts } from './moderations/encode-reply.js'
import { mistral, openai } from './moderations/forms.js'
import { clientCodec, upstreamCodec } from './openai-chat/index.js'
import { decodeRerank } from './rerank/decode-request.js'
import { encodeRanking, encodeRerankError } from './rerank/encode-reply.js'
import { bedrock, cohere, cohereV1, deepinfra, jina, sglang, tei, vllm, voyage } from './rerank/forms.js'
import { withoutVersion } from './wire/base-path.js'

function upstreamOf(form: TaskForm): UpstreamCodec {
  const { path, basePath = withoutVersion, encode, read } = form
  return {
    ...upstreamCodec,
    target: (model) => ({ path: path(model), accept: 'application/json' }),
    basePath,
    encodeRequest: (request, _facts, losses) => encode(request, losses),
    edits: (body, modelName) =>
      body['model'] === modelName ? [] : [{ key: 'model', json: JSON.stringify(modelName) }],
    newWatcher: null,
    replyFacts: null,
    readTask: read,
  }
}

function rerankClient(version: 1 | 2): ClientCodec {
  return {
    ...clientCodec,
    envelope: { ...clientCodec.envelope, idPrefix: 'rerank-' },
    decodeRequest: (body) => decodeRerank(body, version),
    encodeTask: (result, request, seed) => encodeRanking(result, request, seed, version),
    encodeError: encodeRerankError,
  }
}

const moderationClient: ClientCodec = {
  ...clientCodec,
  envelope: { ...clientCodec.envelope, idPrefix: 'modr-' },
  peek: (body) => ({ model: moderationModelOf(body), stream: false }),
  decodeRequest: (body) => decodeModeration(body),
  encodeTask: (result, _request, seed) => encodeVerdicts(result, seed),
}

const rerankV1 = rerankClient(1)

/** The codecs of each format. Clients use `rerank`, `cohere-rerank` and `openai-moderations`. */
export const TASK_CODECS: Readonly<Record<TaskFormat, FormatCodecs>> = {
  rerank: { clientCodec: rerankV1, upstreamCodec: upstreamOf(jina) },
  'cohere-rerank': { clientCodec: rerankClient(2), upstreamCodec: upstreamOf(cohere) },
  'cohere-v1-rerank': { clientCodec: rerankV1, upstreamCodec: upstreamOf(cohereV1) },
  'jina-rerank': { clientCodec: rerankV1, upstreamCodec: upstreamOf(jina) },
  'voyage-rerank': { clientCodec: rerankV1, upstreamCodec: upstreamOf(voyage) },
  'vllm-rerank': { clientCodec: rerankV1, upstreamCodec: upstreamOf(vllm) },
  'tei-rerank': { clientCodec: rerankV1, upstreamCodec: upstreamOf(tei) },
  'sglang-rerank': { clientCodec: rerankV1, upstreamCodec: upstreamOf(sglang) },
  'deepinfra-rerank': { clientCodec: rerankV1, upstreamCodec: upstreamOf(deepinfra) },
  'bedrock-rerank': { clientCodec: rerankV1, upstreamCodec: upstreamOf(bedrock) },
  'openai-moderations': { clientCodec: moderationClient, upstreamCodec: upstreamOf(openai) },
  'mistral-moderations': { clientCodec: moderationClient, upstreamCodec: upstreamOf(mistral) },
}
