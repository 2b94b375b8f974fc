/**
 * Reads the body of a request and returns one checked `Call`. The whole body is buffered before anything is
 * sent upstream, so that a framing error at its end has no effect there and another attempt is possible.
 */
import { splice } from '../../formats/wire/json/splice.js'
import type { Duplex } from 'node:stream'
import type { IncomingHttpHeaders } from 'node:http'
import type { JsonObject } from '../../base/json.js'
import type { ChatRequest } from '../../formats/chat/request.js'
import { OPERATIONS } from '../../formats/chat/operations.js'
import { textUnits } from '../../formats/chat/text-size.js'
import { fieldsOfForm } from '../../formats/wire/media/form-fields.js'
import type { UploadPart } from '../../formats/chat/upload.js'
import type { Endpoint } from '../../formats/dialect.js'
import { clientCodecOf, type ResolvedEndpoint } from '../../formats/index.js'
import { gatewayError, GatewayError, bodyTooLarge } from '../../errors.js'
import { codingOf, decoderFor, type Coding } from '../../http/content-encoding.js'
import { headerOf, type HttpRequest } from '../../http/message.js'
import { guardTrailers } from '../../http/request-guard.js'
import { LATE_BODY } from '../../http/slow-clients.js'
import {
  MAX_TEXT_BYTES,
  parseObject,
  parseSteps,
  type ParsedObject,
} from '../../formats/wire/json/parse-body.js'
import { TextLimit } from '../../formats/wire/json/text-limit.js'
import type { Steps } from '../../base/steps.js'
import type { HeldMemory } from '../body-memory.js'
import type { Exchange } from '../client-exchange.js'
import { UNEXPECTED_FAILURE } from '../transport-errors.js'
import { bodyTurns } from '../../base/turn-queue.js'
import { joinChunks, joinedSteps, LARGE_BYTES } from '../streams/join-chunks.js'
import { callAt, type Call, type Intake } from './call.js'
import { isForm, lateModel, readForm } from './read-form.js'
import { RequestTransform } from '../streams/request-transform.js'
import { FORM_HEAD_BYTES, StreamedForm } from '../streams/streamed-form.js'

/** Reads and checks the body within its limits. Rejects with `GatewayError`. */
export function receive(x: Exchange, resolved: ResolvedEndpoint, intake: Intake): Promise<Call> {
  const beganMs = performance.now()
  return new Promise((resolve, reject) => {
    const failed = (error: unknown): void => {
      intake.tookMs = performance.now() - beganMs
      reject(error instanceof GatewayError ? error : gatewayError(UNEXPECTED_FAILURE, error))
    }
    const received = (call: Call): void => {
      try {
        intake.held.endParsing(call.body)
      } catch (error) {
        // There is no memory for the parsed body.
        failed(error)
        return
      }
      intake.tookMs = performance.now() - beganMs
      resolve(call)
    }
    try {
      const transform = transformOf(x, resolved, intake)
      const stop = pass(x, transform, intake, resolved)
      transform.on('data', (call: Call | Promise<Call>) => {
        stop()
        if (call instanceof Promise) call.then(received, failed)
        else received(call)
      })
      transform.on('error', (error) => {
        stop()
        failed(error)
      })
    } catch (error) {
      failed(error)
    }
  })
}

/** The transform that collects the body and makes the call of it. */
function transformOf(
  x: Exchange,
  resolved: ResolvedEndpoint,
  intake: Intake,
): RequestTransform<Call | Promise<Call>> {
  const { held } = intake
  const { req } = x
  const isUpload = isFormOf(x, resolved)
  const maxBodyBytes = maxBytesOf(x, resolved)
  // The rest of an encoded body cannot be passed on.
  const isStreamable = isUpload && codingOf(req) === null
  const text = new TextLimit(MAX_TEXT_BYTES)
  return new RequestTransform({
    take(chunk) {
      const bytes = chunk.length
      if (intake.bytes + bytes > maxBodyBytes) throw bodyTooLarge(maxBodyBytes)
      if (!isUpload) text.add(chunk)
      held.take(bytes)
      intake.bytes += bytes
    },
    check(chunks) {
      const refusal = guardTrailers(req)
      if (refusal !== null) throw gatewayError(refusal)
      const { isAscii } = text
      held.beginParsing(intake.bytes, isAscii)
      if (isUpload) return callOfForm(chunks, intake.bytes, { resolved, headers: req.headers })
      const query = (req.url ?? '').slice(x.path.length + 1)
      return callOf(chunks, intake.bytes, { resolved, headers: req.headers, query, isAscii })
    },
    ...(isStreamable && { early: (chunks) => streamedCall(x, resolved, { intake, chunks }) }),
  })
}

/**
 * The call of a form that is too large to be held, as soon as its first 64 KiB have arrived; null for a form
 * that may still be held. Throws `malformed_request` if they do not name the model.
 */
function streamedCall(
  x: Exchange,
  resolved: ResolvedEndpoint,
  { intake, chunks }: { readonly intake: Intake; readonly chunks: readonly Buffer[] },
): Call | null {
  const { req } = x
  const { uploadHoldBytes, maxUploadBytes, clientStallMs } = x.generation.snapshot.config.server
  const length = lengthOf(req)
  if ((length ?? intake.bytes) <= uploadHoldBytes || intake.bytes < FORM_HEAD_BYTES) return null
  const streamed = new StreamedForm(
    {
      source: req,
      read: [...chunks],
      contentType: req.headers['content-type'] ?? '',
      length,
      maxBytes: maxUploadBytes,
      stallMs: clientStallMs,
      stalled: () => x.cancellation.cancel(gatewayError(LATE_BODY)),
      count: (bytes) => (intake.bytes += bytes),
      checkEnd: () => {
        if (!req.complete) throw new GatewayError('client_gone', 'The client closed the connection.')
        const refusal = guardTrailers(req)
        if (refusal !== null) throw gatewayError(refusal)
      },
    },
    OPERATIONS[resolved.endpoint.operation].earlyFields ?? [],
  )
  const fields = fieldsOfForm(streamed.parts)
  if (fields['model'] === undefined) throw lateModel(uploadHoldBytes)
  const { clientCodec } = resolved
  const { endpoint, model } = endpointOfForm(resolved)
  const body = model === undefined ? fields : { ...fields, model }
  const request = clientCodec.decodeRequest(body, endpoint, req.headers, streamed.partsWithFile())
  const raw = Buffer.alloc(0)
  const call = callAt({ ...resolved, endpoint }, { raw, body, request: withLateFields(request, streamed) })
  return { ...call, streamed }
}

/** The request with the format and the form of its reply, which may be known only after the file. */
function withLateFields(request: ChatRequest, { late }: StreamedForm): ChatRequest {
  const { task, stream } = request
  if (task?.kind !== 'transcriptions' && task?.kind !== 'translations') return request
  const { format } = task
  return {
    ...request,
    get stream() {
      return stream || (task.kind === 'transcriptions' && late.get('stream')?.toLowerCase() === 'true')
    },
    task: {
      ...task,
      get format() {
        return late.get('response_format') ?? format
      },
    },
  }
}

/** The size of the body in bytes; null if the client does not say it. */
function lengthOf(req: HttpRequest): number | null {
  const length = headerOf(req, 'content-length')
  return length === undefined ? null : Number(length)
}

/**
 * Passes the body of the request through the transform, until the returned function is called. Throws if the
 * headers refuse it. Without `pipe`, which adds eight listeners: the transform never makes the client wait.
 */
function pass(
  x: Exchange,
  transform: RequestTransform<unknown>,
  { held }: Intake,
  resolved: ResolvedEndpoint,
): () => void {
  const { req, cancellation } = x
  const maxBytes = maxBytesOf(x, resolved)
  checkType(req, OPERATIONS[resolved.endpoint.operation])
  const { uploadHoldBytes } = x.generation.snapshot.config.server
  const heldBytes = isFormOf(x, resolved) ? uploadHoldBytes : maxBytes
  const coding = checkHeaders(req, { maxBytes, heldBytes }, held)
  const onError = (error: Error): void => void transform.destroy(error)
  const decoder = coding === null ? null : decoding(req, coding, { maxBytes, held, onError })
  const write = (chunk: Buffer): void => void transform.write(chunk)
  const end = (): void => void transform.end()
  cancellation.onCancel(onError)
  if (decoder === null) req.on('data', write).on('end', end)
  else req.pipe(decoder).pipe(transform)
  return () => {
    cancellation.onCancel(null)
    if (!req.readableEnded) {
      req.off('data', write).off('end', end).unpipe()
      req.pause()
    }
    decoder?.destroy()
  }
}

/** The limits and callbacks for decoding a body. */
interface Decoding {
  readonly maxBytes: number
  readonly held: HeldMemory
  readonly onError: (error: GatewayError) => void
}

/** A stream that decodes the body. The encoded bytes count for the size limit and for `held` too. */
function decoding(req: HttpRequest, coding: Coding, to: Decoding): Duplex {
  const { maxBytes, held, onError } = to
  const decoder = decoderFor(coding, maxBytes)
  let codedBytes = 0
  const count = (chunk: Buffer): void => {
    codedBytes += chunk.length
    try {
      if (codedBytes > maxBytes) throw bodyTooLarge(maxBytes)
      held.take(chunk.length)
    } catch (error) {
      decoder.destroy(error instanceof Error ? error : undefined)
    }
  }
  req.on('data', count)
  decoder.once('close', () => req.off('data', count))
  decoder.on('error', (cause) => {
    const message = `The body is not valid ${coding}: it is damaged or incomplete.`
    const isKnown = cause instanceof GatewayError
    const param = 'content-encoding'
    onError(isKnown ? cause : new GatewayError('malformed_request', message, { param, cause }))
  })
  return decoder
}

/** The largest body of the endpoint. */
function maxBytesOf(x: Exchange, resolved: ResolvedEndpoint): number {
  const { maxBodyBytes, maxUploadBytes, uploadHoldBytes } = x.generation.snapshot.config.server
  if (!isFormOf(x, resolved)) return maxBodyBytes
  return codingOf(x.req) === null ? maxUploadBytes : Math.min(uploadHoldBytes, maxUploadBytes)
}

/** Whether the body is a multipart form. */
function isFormOf({ req }: Exchange, { endpoint }: ResolvedEndpoint): boolean {
  const { isUpload, takesJson } = OPERATIONS[endpoint.operation]
  if (isUpload !== true) return false
  return takesJson !== true || !isJson(headerOf(req, 'content-type') ?? '')
}

/** Throws `unsupported_media_type` for another content type than those of the endpoint. */
function checkType(
  req: HttpRequest,
  { isUpload, takesJson }: { readonly isUpload?: true; readonly takesJson?: true },
): void {
  const type = headerOf(req, 'content-type')
  const isAllowed = (type: string): boolean =>
    (isUpload === true && isForm(type)) || ((isUpload !== true || takesJson === true) && isJson(type))
  if (type !== undefined && isAllowed(type)) return
  const form = 'multipart/form-data with a boundary'
  const json = 'application/json'
  const wanted = isUpload !== true ? json : takesJson === true ? `${form}, or ${json}` : form
  throw new GatewayError('unsupported_media_type', `The content-type header must be ${wanted}.`, {
    param: 'content-type',
  })
}

/** Checks the headers before any of the body is read; returns the content coding, null if there is none. */
function checkHeaders(
  req: HttpRequest,
  { maxBytes, heldBytes }: { readonly maxBytes: number; readonly heldBytes: number },
  held: HeldMemory,
): Coding | null {
  const coding = codingOf(req)
  const length = lengthOf(req)
  if (length === null) return coding
  if (length > maxBytes) throw bodyTooLarge(maxBytes)
  held.check(Math.min(length, heldBytes))
  return coding
}

function isJson(type: string): boolean {
  if (type === 'application/json') return true
  const [essence = '', ...parameters] = type.toLowerCase().split(';')
  if (essence.trim() !== 'application/json') return false
  return parameters.every((parameter) => {
    const [name = '', value = ''] = parameter.trim().split('=')
    return name !== 'charset' || /^"?utf-?8"?$/.test(value)
  })
}

/** The call of a multipart form; that of a large one in turns, as `callOf`. */
function callOfForm(chunks: Buffer[], bytes: number, context: FormContext): Call | Promise<Call> {
  return bytes > LARGE_BYTES ? inTurns(formSteps(chunks, context)) : callFromForm(joinChunks(chunks), context)
}

function* formSteps(chunks: Buffer[], context: FormContext): Steps<Call> {
  const raw = yield* joinedSteps(chunks)
  yield
  return callFromForm(raw, context)
}

function callFromForm(raw: Buffer, { resolved, headers }: FormContext): Call {
  const { clientCodec } = resolved
  const { endpoint, model } = endpointOfForm(resolved)
  const sent = readForm(raw, headers['content-type'] ?? '')
  const others = (): UploadPart[] => sent.filter(({ name }) => name !== 'model')
  const form = model === undefined ? sent : [{ name: 'model', value: model }, ...others()]
  const body = fieldsOfForm(form)
  const request = clientCodec.decodeRequest(body, endpoint, headers, form)
  return callAt({ ...resolved, endpoint }, { raw, body, request })
}

/** The endpoint of a form, and the model of its path: of Azure, which is that of the request. */
function endpointOfForm({ endpoint }: ResolvedEndpoint): {
  readonly endpoint: Endpoint
  readonly model: string | undefined
} {
  const { model, operation } = endpoint
  return { endpoint: model === undefined ? endpoint : { operation }, model }
}

/** The call of a body of a format. Rejects with `malformed_request` as `receive`. */
export async function callIn(
  raw: Buffer,
  resolved: ResolvedEndpoint,
  headers: IncomingHttpHeaders,
): Promise<Call> {
  return callOf([raw], raw.length, { resolved, headers })
}

/** The call of another body of the same request. Rejects with `malformed_request` as `receive`. */
export async function readAgain(call: Call, raw: Buffer): Promise<Call> {
  return callOf([raw], raw.length, { resolved: call, query: call.query })
}

function callOf(chunks: Buffer[], bytes: number, context: BodyContext): Call | Promise<Call> {
  if (bytes > LARGE_BYTES) return inTurns(callSteps(chunks, context))
  const raw = joinChunks(chunks)
  const { isAscii = false } = context
  return callFrom(raw, parseObject(raw, { isAscii }), context)
}

/** Parses a large body in several turns of the event loop, so that other requests are served between them. */
async function inTurns(steps: Steps<Call>): Promise<Call> {
  const call = await bodyTurns.run(steps)
  await bodyTurns.next()
  return call
}

function* callSteps(chunks: Buffer[], context: BodyContext): Steps<Call> {
  const raw = yield* joinedSteps(chunks)
  const { isAscii = false } = context
  const parsed = yield* parseSteps(raw, { isAscii })
  yield
  return callFrom(raw, parsed, context)
}

/**
 * Maximum text in UTF-16 units. `TextLimit` refuses most such bodies before parsing; this check finds text
 * that looked like inline data.
 */
const MAX_TEXT_UNITS = 8 * 1024 * 1024

type FormContext = Required<Pick<BodyContext, 'resolved' | 'headers'>>

/** The endpoint that a body was sent to, and the headers and the query of its request. */
interface BodyContext {
  readonly resolved: ResolvedEndpoint
  readonly headers?: IncomingHttpHeaders
  readonly query?: string
  /** The body is known to be ASCII. */
  readonly isAscii?: boolean
}

/** The call of a parsed body. Throws `malformed_request`, which names the invalid field. */
export function callFrom(
  raw: Buffer,
  { value, members }: ParsedObject,
  { resolved, headers, query = '' }: BodyContext,
): Call {
  const { model } = resolved.endpoint
  if (model !== undefined && resolved.dialect === 'openai-chat') {
    // A path of Azure: its model is that of the request, and the query has the version of Azure's API.
    const { operation } = resolved.endpoint
    const named = splice(raw, members, [{ key: 'model', json: JSON.stringify(model) }])
    const context = { resolved: { ...resolved, endpoint: { operation } }, ...(headers && { headers }) }
    return callFrom(named, parseObject(named), context)
  }
  const isForeign = isResponsesBody(value, resolved)
  const reader = isForeign ? { ...resolved, clientCodec: clientCodecOf('openai-responses') } : resolved
  const request = requestIn(value, raw.length, { resolved: reader, headers })
  if (isForeign) refuseReferences(value, reader)
  const call = callAt(resolved, { raw, members, body: value, request, query })
  return isForeign ? { ...call, isRewritten: true } : call
}

/**
 * Cursor's agents post the body of Responses to the path of chat completions, and read a chat. No upstream
 * gets its bytes.
 */
function isResponsesBody({ messages, input }: JsonObject, { wire, endpoint }: ResolvedEndpoint): boolean {
  return (
    wire === 'openai-chat' &&
    endpoint.operation === 'chat' &&
    ((messages ?? null) === null || (Array.isArray(messages) && messages.length === 0)) &&
    (Array.isArray(input) || typeof input === 'string')
  )
}

/** A chat is not stored, so what a body of Responses refers to would be missing. */
function refuseReferences(body: JsonObject, { clientCodec: { storage } }: ResolvedEndpoint): void {
  const references = storage?.references(body)
  if (references === undefined) return
  const { previous, items } = references
  if (previous === null && items.length === 0) return
  const param = previous === null ? 'input' : storage?.previousParam
  const message =
    'A chat is not stored and cannot be continued by an id: send the whole conversation as input.'
  throw new GatewayError('malformed_request', message, param === undefined ? {} : { param })
}

/** The request in a parsed body. Throws `malformed_request`, which names the invalid field. */
export function requestIn(
  body: JsonObject,
  bodyBytes: number,
  {
    resolved,
    headers,
  }: { readonly resolved: ResolvedEndpoint; readonly headers?: IncomingHttpHeaders | undefined },
): ChatRequest {
  const request = resolved.clientCodec.decodeRequest(body, resolved.endpoint, headers)
  if (bodyBytes > MAX_TEXT_UNITS && textUnits(request) > MAX_TEXT_UNITS) {
    throw new GatewayError(
      'malformed_request',
      `The request has more than ${MAX_TEXT_UNITS} characters of text beside its images, files and audio.`,
      { param: 'messages' },
    )
  }
  return request
}
