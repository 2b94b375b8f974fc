/** `sluice explain`: the route and upstreams of a model id under a configuration. Sends no request. */
import { MAX_BODY_BYTES } from '../config/schema/server-schema.js'
import { messageWithAdvice } from '../base/file-access.js'
import { loadConfig } from '../config/load-config.js'
import { secretsOf } from '../config/secret-settings.js'
import { readBoundedFile } from '../config/bounded-file.js'
import { priceAt } from '../formats/chat/model-facts.js'
import { OPERATION_NAMES, operationNamed } from '../formats/chat/operations.js'
import { escapeControls } from '../formats/wire/request-fields.js'
import type { BodyExplanation } from '../gateway/explain/explain-body.js'
import {
  bodyError,
  explainedJson,
  explainModel,
  type BodyError,
  type ExplainedModel,
  type ExplainedRequest,
  type Explanation,
} from '../gateway/explain/explain-model.js'
import { operationRows } from '../gateway/explain/explain-operation.js'
import { guardrailsText, routeRows } from '../gateway/explain/explain-route.js'
import type { DialectsByRequest } from '../gateway/upstreams/choose-openai-endpoint.js'
import { hideSecrets, jsonWithoutSecrets, protectSecrets } from '../hide-secrets.js'
import { Option } from '@commander-js/extra-typings'
import { problemLines } from './problem-lines.js'
import { configOption, declare, repeated, UsageError } from './command.js'

/** The options about the conditions of routes. */
export interface TraitValues {
  readonly label?: readonly string[] | undefined
  readonly images?: true | undefined
  readonly tools?: true | undefined
  readonly promptTokens?: string | undefined
}

function labelOf(text: string): [name: string, value: string] {
  const at = text.indexOf('=')
  if (at < 1) throw new UsageError(`--label must be NAME=VALUE, not "${text}"`)
  return [text.slice(0, at), text.slice(at + 1)]
}

/** The bytes of the file, or of standard input for `-`. */
async function readBody(file: string): Promise<{ bytes: Buffer } | BodyError> {
  try {
    const bytes = file === '-' ? await standardInput() : readBoundedFile(file, MAX_BODY_BYTES)
    if (bytes !== null) return { bytes }
    return bodyError(null, `standard input is larger than ${MAX_BODY_BYTES} bytes`)
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unreadable'
    const why = error instanceof Error ? messageWithAdvice(error) : code
    return bodyError(null, `cannot read "${file}": ${code === 'ENOENT' ? 'it does not exist' : why}`)
  }
}

/** All of standard input; null once it is larger than a body may be. */
async function standardInput(): Promise<Buffer | null> {
  const chunks: Buffer[] = []
  let total = 0
  for await (const chunk of process.stdin) {
    const bytes = Buffer.from(chunk as Uint8Array)
    total += bytes.length
    if (total > MAX_BODY_BYTES) return null
    chunks.push(bytes)
  }
  return Buffer.concat(chunks)
}

/** `sluice explain`. */
export function command() {
  return declare({
    name: 'explain',
    summary: 'show the route and the upstreams of a model id, and why',
    description: `
Prints the route of a model id, the reason, and the upstreams that may serve it: their share of the requests,
model, dialect, circuit breaker, and the features that translation loses or refuses; then retries and
hedging, whether the key is set, the catalogue's entry of the model and how budgets count it. With a
request body it also prints for each field whether it reaches the first upstream or is lost; only names of
fields are printed, no contents. With an operation it prints which of the upstreams serve it, in which form
and at which address, or why none does.`,
    exitStatus: `
0 a route matches, 1 no route matches, the request would be refused or a file is not valid,
2 wrong usage.`,
    example: `
sluice explain gpt-5.5 --config config/gateway.yaml
sluice explain claude-opus-5-5 --config config/gateway.yaml --body request.json
sluice explain gemini-3.1-flash-image --config config/gateway.yaml --operation image_generation`,
  })
    .argument('<MODEL>')
    .addOption(configOption())
    .option('--body <FILE>', 'a chat-completions request; - reads it from standard input')
    .option(
      '--label <NAME=VALUE>',
      'a label of the API key, for the conditions of routes; may be repeated',
      repeated,
    )
    .option('--images', 'the request has images')
    .option('--tools', 'the request has tools')
    .option('--prompt-tokens <N>', 'the size of its prompt in tokens')
    .addOption(
      new Option('--operation <NAME>', 'the operation that is requested, by its name here or in traces')
        .choices(OPERATION_NAMES)
        .conflicts('body'),
    )
    .option('--json', 'print one JSON object')
    .action(async (model, options) => {
      process.exitCode = await runExplain(model, options)
    })
}

interface ExplainOptions extends TraitValues {
  readonly config: string
  readonly body?: string | undefined
  readonly operation?: string | undefined
  readonly json?: true | undefined
}

async function runExplain(model: string, values: ExplainOptions): Promise<number> {
  const loaded = loadConfig(values.config, process.env)
  if (!loaded.ok) {
    if (values.json) printJson({ model, errors: loaded.errors })
    else console.log(problemLines(loaded.errors).split('\n').map(escapeControls).join('\n'))
    return 1
  }
  protectSecrets(secretsOf(loaded.config))
  const { body } = values
  const read = body === undefined ? null : await readBody(body)
  const bytes = read === null || 'error' in read ? null : read.bytes
  const asked = requestIn(values, { model, body: bytes })
  const whole = explainModel(asked, loaded)
  const isRouted = whole.explanation.routing !== null
  const request = isRouted && read !== null && 'error' in read ? read : whole.request
  const explained = { ...whole, request }
  if (values.json) printJson(explainedJson(explained))
  else console.log(hideSecrets(textOf(explained, read === null || !('error' in read)), '***'))
  const { operation } = explained
  if (!isRouted || (operation !== null && operation.served_by === null)) return 1
  return request !== null && ('error' in request || request.result === 'refused') ? 1 : 0
}

/** `isRead`: the bytes of the body could be read. */
function textOf({ explanation, isMalformed, operation, request }: ExplainedModel, isRead: boolean): string {
  const rows =
    operation === null ? [] : ['', ...operationRows(operation).map(([title, text]) => row(title, text))]
  const body = request === null ? [] : ['', bodyText(request, isRead)]
  return [explanationText(explanation, isMalformed ? 400 : 404), ...rows, ...body].join('\n')
}

/** The request of the options. */
function requestIn(
  values: ExplainOptions,
  { model, body }: Pick<ExplainedRequest, 'model' | 'body'>,
): ExplainedRequest {
  const { label = [], images, tools, promptTokens = '0', operation } = values
  const tokens = Number(promptTokens)
  if (!Number.isInteger(tokens) || tokens < 0) {
    throw new UsageError(`--prompt-tokens must be a whole number, not "${promptTokens}"`)
  }
  return {
    model,
    labels: Object.fromEntries(label.map(labelOf)),
    hasImages: images === true,
    hasTools: tools === true,
    promptTokens: tokens,
    operation: operation === undefined ? null : operationNamed(operation),
    body,
  }
}

/** Ids and names of fields may have any character: a terminal must not interpret them. */
function printJson(value: object): void {
  console.log(escapeControls(jsonWithoutSecrets(value)))
}

function bodyText(request: BodyExplanation | BodyError, isRead: boolean): string {
  if ('error' in request) {
    const { message } = request.error
    return row('request', isRead ? `refused with 400: ${message}` : message)
  }
  const wide = Math.max(...request.fields.map(({ path }) => path.length))
  const fields = request.fields.map(({ path, outcome, note }) =>
    row('', `${path.padEnd(wide)}  ${outcome}${note === null ? '' : `: ${note}`}`),
  )
  const lost = request.lost === null ? [] : [row('reported', `x-sluice-lost: ${request.lost}`)]
  return [
    row('sends', request.endpoint),
    row('request', request.result === 'refused' ? 'refused with 400' : request.result),
    ...fields,
    ...lost,
  ].join('\n')
}

function row(title: string, text: string): string {
  return `${title.padEnd(10)} ${escapeControls(text)}`
}

/** `unrouted`: the status of a request that has no route. */
function explanationText(explanation: Explanation, unrouted = 404): string {
  const { route, why } = explanation
  const rows: [string, string][] = [['model', explanation.model]]
  if (route === null) rows.push(['route', `none: ${why}: clients get ${unrouted}`])
  else {
    rows.push(['route', `${route}: ${why}`])
    for (const other of explanation.others) rows.push(['', `not used: ${other}`])
    rows.push(['upstream', upstreamText(explanation)])
    rows.push(['dialect', wireFormatText(explanation.wire_format)])
    rows.push(['key', keyText(explanation)])
    rows.push(['sent as', explanation.upstream_model ?? ''])
    if (explanation.routing !== null) rows.push(...routeRows(explanation.routing))
    const { guardrails } = explanation
    if (guardrails.length > 0) rows.push(['guardrails', guardrailsText(guardrails)])
  }
  rows.push(['catalogue', catalogueText(explanation)])
  if (explanation.budget !== null) rows.push(['budgets', explanation.budget_text])
  return rows.map(([title, text]) => row(title, text)).join('\n')
}

function wireFormatText(wire_format: DialectsByRequest | null): string {
  if (wire_format === null) return ''
  const { plain, with_tools: withTools, why } = wire_format
  const others = withTools === plain ? '' : `, with tools ${withTools}`
  return `${plain}${others}: ${why}`
}

function upstreamText({ upstream, platform, preset, base_url: baseUrl }: Explanation): string {
  const cloud = platform === null ? '' : `, platform ${platform}`
  const known = preset === null ? cloud : `${cloud}, preset ${preset}`
  return `${upstream ?? ''} (${baseUrl ?? ''}${known})`
}

function keyText(explanation: Explanation): string {
  const { api_key_source: source, identity } = explanation
  if (identity !== null) return `none: the identity of the gateway at ${identity}`
  if (explanation.configured === false) return `not set: ${source ?? ''}: clients get 503`
  return source === null ? 'set in the file, or not needed' : `from ${source}`
}

function catalogueText(explanation: Explanation): string {
  if (explanation.catalogue === null) return 'not listed: only its family is known'
  const { match, facts } = explanation.catalogue
  const parts = [`${facts.id} (${match})`, `family ${facts.family}`]
  if (facts.contextWindow !== undefined) parts.push(`context ${facts.contextWindow} tokens`)
  if (facts.maxOutputTokens !== undefined) parts.push(`output ${facts.maxOutputTokens} tokens`)
  const { input, output } = priceAt(facts.price, Date.now()) ?? {}
  if (input !== undefined && output !== undefined) {
    parts.push(`USD ${input} in, ${output} out per million tokens`)
  }
  if (facts.shutdownDate !== undefined) parts.push(`ends ${facts.shutdownDate}`)
  return parts.join(', ')
}
