/** The codecs of tasks: what their formats say, and for the rest OpenAI's. */
import type {
  EncodedTask,
  TaskFormat,
  ClientCodec,
  FormatCodecs,
  TaskForm,
  UpstreamCodec,
} from './dialect.js'
import { upstreamCodec as geminiCodec } from './gemini/index.js'
import { geminiImageEdits, geminiImages } from './gemini/images.js'
import { geminiSpeech } from './gemini/speech.js'
import { geminiTranscriptions } from './gemini/transcriptions.js'
import { drawingCodec } from './images/chat-clients.js'
import { decodePictureEdit, decodePictures } from './images/decode-request.js'
import { encodePictures, newPictureWriter } from './images/encode-reply.js'
import * as images from './images/forms.js'
import { judgingCodec } from './moderations/chat.js'
import { decodeModeration, moderationModelOf } from './moderations/decode-request.js'
import { encodeVerdicts } from './moderations/encode-reply.js'
import { mistral, openai } from './moderations/forms.js'
import { clientCodec, upstreamCodec } from './openai-chat/index.js'
import { decodeRerank } from './rerank/decode-request.js'
import { encodeRanking, encodeRerankError } from './rerank/encode-reply.js'
import { bedrock, cohere, cohereV1, deepinfra, jina, sglang, tei, vllm, voyage } from './rerank/forms.js'
import { speechOfChats } from './speech/chat-clients.js'
import { decodeSpeech, readsEvents } from './speech/decode-request.js'
import { encodeSpeech, newSpeechWriter } from './speech/encode-reply.js'
import * as speech from './speech/forms.js'
import { transcribingCodec } from './transcriptions/chat-clients.js'
import { decodeTranscription, readsTranscriptEvents } from './transcriptions/decode-request.js'
import { encodeTranscript, newTranscriptWriter } from './transcriptions/encode-reply.js'
import * as transcripts from './transcriptions/forms.js'
import { mistral as mistralTranscripts } from './transcriptions/mistral.js'
import { withoutVersion } from './wire/base-path.js'
import { modelOf, streamOf } from './wire/request-fields.js'

/** `base`: the codec of the vendor, with its credential and its errors. */
function upstreamOf(form: TaskForm, base: UpstreamCodec = upstreamCodec): UpstreamCodec {
  const { path, basePath = withoutVersion, encode, encodeForm, edits, read, newReader } = form
  return {
    ...base,
    streamsWhole: () => false,
    wholeOnly: () => false,
    continuation: null,
    target: (model, stream) => ({
      path: path(model, stream),
      accept: newReader === undefined ? JSON_TYPE : '*/*',
    }),
    basePath,
    encodeRequest: (request, _facts, losses) => encode(request, losses),
    edits: (body, modelName) => [
      ...(body['model'] === modelName ? [] : [{ key: 'model', json: JSON.stringify(modelName) }]),
      ...(edits?.(body, modelName) ?? []),
    ],
    newWatcher: null,
    replyFacts: null,
    readTask: read,
    ...(encodeForm !== undefined && { encodeForm }),
    ...(newReader !== undefined && { newMediaReader: newReader }),
  }
}

const JSON_TYPE = 'application/json'

function rerankClient(version: 1 | 2): ClientCodec {
  return {
    ...clientCodec,
    envelope: { ...clientCodec.envelope, idPrefix: 'rerank-' },
    decodeRequest: (body) => decodeRerank(body, version),
    encodeTask: (result, request, seed) => bodyOf(encodeRanking(result, request, seed, version)),
    encodeError: encodeRerankError,
  }
}

function bodyOf(body: string | null): EncodedTask | null {
  return body === null ? null : { body }
}

const moderationClient: ClientCodec = {
  ...clientCodec,
  envelope: { ...clientCodec.envelope, idPrefix: 'modr-' },
  peek: (body) => ({ model: moderationModelOf(body), stream: false }),
  decodeRequest: (body) => decodeModeration(body),
  encodeTask: (result, _request, seed) => bodyOf(encodeVerdicts(result, seed)),
}

const pictureClient: ClientCodec = {
  ...clientCodec,
  peek: (body) => ({ model: modelOf(body), stream: streamOf(body) }),
  decodeRequest: (body) => decodePictures(body),
  encodeTask: encodePictures,
  newMediaWriter: newPictureWriter,
}

const pictureEditClient: ClientCodec = {
  ...pictureClient,
  decodeRequest: (body, _endpoint, _headers, form) => decodePictureEdit(body, form),
}

function transcriptClient(kind: 'transcriptions' | 'translations'): ClientCodec {
  return {
    ...clientCodec,
    peek: (body) => ({ model: modelOf(body), stream: readsTranscriptEvents(body) }),
    decodeRequest: (body, _endpoint, _headers, form = []) => decodeTranscription(kind, body, form),
    encodeTask: encodeTranscript,
    newMediaWriter: newTranscriptWriter,
  }
}

const speechClient: ClientCodec = {
  ...clientCodec,
  peek: (body) => ({ model: modelOf(body), stream: readsEvents(body) }),
  decodeRequest: (body) => decodeSpeech(body),
  encodeTask: (result, request) => encodeSpeech(result, request),
  newMediaWriter: newSpeechWriter,
}

const rerankV1 = rerankClient(1)

/** The codecs of each format. Clients use `rerank`, `cohere-rerank` and those of OpenAI. */
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
  'chat-moderations': { clientCodec: moderationClient, upstreamCodec: judgingCodec(upstreamCodec) },
  'openai-images': { clientCodec: pictureClient, upstreamCodec: upstreamOf(images.openai) },
  'gemini-images': { clientCodec: pictureClient, upstreamCodec: upstreamOf(geminiImages, geminiCodec) },
  'chat-images': { clientCodec: pictureClient, upstreamCodec: drawingCodec(upstreamOf(images.openai)) },
  'chat-image-edits': {
    clientCodec: pictureEditClient,
    upstreamCodec: drawingCodec(upstreamOf(images.openaiEdits)),
  },
  'chat-speech': { clientCodec: speechClient, upstreamCodec: speechOfChats(upstreamOf(speech.openai)) },
  'chat-mistral-speech': {
    clientCodec: speechClient,
    upstreamCodec: speechOfChats(upstreamOf(speech.mistral)),
  },
  'chat-transcriptions': {
    clientCodec: transcriptClient('transcriptions'),
    upstreamCodec: transcribingCodec(upstreamOf(transcripts.transcriptions)),
  },
  'chat-mistral-transcriptions': {
    clientCodec: transcriptClient('transcriptions'),
    upstreamCodec: transcribingCodec(upstreamOf(mistralTranscripts)),
  },
  'openai-image-edits': { clientCodec: pictureEditClient, upstreamCodec: upstreamOf(images.openaiEdits) },
  'gemini-image-edits': {
    clientCodec: pictureEditClient,
    upstreamCodec: upstreamOf(geminiImageEdits, geminiCodec),
  },
  'openai-transcriptions': {
    clientCodec: transcriptClient('transcriptions'),
    upstreamCodec: upstreamOf(transcripts.transcriptions),
  },
  'mistral-transcriptions': {
    clientCodec: transcriptClient('transcriptions'),
    upstreamCodec: upstreamOf(mistralTranscripts),
  },
  'gemini-transcriptions': {
    clientCodec: transcriptClient('transcriptions'),
    upstreamCodec: upstreamOf(geminiTranscriptions, geminiCodec),
  },
  'openai-translations': {
    clientCodec: transcriptClient('translations'),
    upstreamCodec: upstreamOf(transcripts.translations),
  },
  'openai-speech': { clientCodec: speechClient, upstreamCodec: upstreamOf(speech.openai) },
  'mistral-speech': { clientCodec: speechClient, upstreamCodec: upstreamOf(speech.mistral) },
  'gemini-speech': { clientCodec: speechClient, upstreamCodec: upstreamOf(geminiSpeech, geminiCodec) },
}
