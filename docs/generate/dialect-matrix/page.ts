/**
 * Generates `docs/reference/dialects.md`: the outcome of every concept in every dialect.
 */
import { factsFor } from '../../../src/config/catalogue.js'
import type { Catalogue } from '../../../src/config/config.js'
import { REQUEST_GROUPS, type RequestConcept } from '../../../src/gateway/explain/request-concepts.js'
import { fieldsOf, resolveEndpoint } from '../../../src/formats/index.js'
import { SCALAR_NAMES, type ScalarField } from '../../../src/formats/wire/scalar-fields.js'
import { CLIENTS } from './messages-clients.js'
import {
  COLUMNS,
  replyOutcome,
  requestOutcome,
  translateRequestConcept,
  type Column,
  type Outcome,
  type TranslationOutcome,
} from './outcomes.js'
import { REPLY_CONCEPTS, type ReplyConcept } from './reply-concepts.js'

const SIGNS: Readonly<Record<Outcome, string>> = {
  kept: '●',
  emulated: '◐',
  lost: '○',
  rejected: '✕',
  needless: '·',
}

/** The whole page, ending in a newline. */
export function dialectsPage(catalogue: Catalogue): string {
  const groups = REQUEST_GROUPS.flatMap(({ title, concepts }) => [
    `### ${title}`,
    '',
    ...table(COLUMNS, concepts, (concept, column) => requestCell(concept, column, catalogue)),
    '',
  ])
  const foreign = COLUMNS.filter(({ dialect }) => dialect !== 'openai-chat')
  const replies = table(foreign, REPLY_CONCEPTS, (concept, column) => replyCell(concept, column, catalogue))
  const models = COLUMNS.map(({ title, model }) => `${title}: \`${model}\``).join(', ')
  return [
    '<!-- Generated from docs/generate/dialect-matrix by `npm run generate`; do not edit. -->',
    '',
    INTRODUCTION.trim(),
    '',
    `The example model of each column: ${models}. Other models can differ, as noted and as listed in the [catalogue](configuration.md#the-catalogue); \`sluice explain MODEL --body request.json\` shows the outcome for any request and model.`,
    '',
    '## Overview',
    '',
    ...overviewTable(catalogue),
    '',
    PAIRS_INTRODUCTION.trim(),
    '',
    ...pairs(catalogue),
    '',
    '## Requests',
    '',
    ...groups,
    ...clientTables(catalogue),
    '## Scalar fields',
    '',
    FIELDS_INTRODUCTION.trim(),
    '',
    ...fieldsTable(),
    '',
    '## Replies',
    '',
    REPLIES_INTRODUCTION.trim(),
    '',
    ...replies,
    '',
  ].join('\n')
}

const INTRODUCTION = `
# Dialects

Clients use one of several formats, and so do upstreams. This page shows the outcome of translations between them. The first
tables are for clients of chat completions; the other formats follow. The page is generated: each concept is sent through
the codecs, and a test fails if page and code disagree.

| sign | meaning |
| :---: | --- |
| ● | **kept**: it arrives; the path is where the provider finds it |
| ◐ | **emulated**: it arrives by other means, or as the nearest equivalent |
| ○ | **lost**: it does not arrive, and the reply's \`x-sluice-lost\` header, the log and \`sluice_translation_losses_total\` report it; with [\`on_loss: reject\`](configuration.md#the-file) the request is refused |
| ✕ | **rejected**: 400 \`untranslatable\` ([errors](errors.md)) naming the field, since a reply without it would be a different reply |
| · | **nothing to translate**: it is the default, or does not affect the reply |

Vendors whose chat completions differ in a few fields have [presets](configuration.md#presets) instead of dialects.

A name of a tool that the vendor refuses (too long, or with a dot, slash, space, umlaut or leading digit) is replaced in the
request, and the reply has the client's name. If the upstream has the client's own format, the name is not changed.

Clients of chat completions and Responses may also send \`video_url\`, \`input_video\`, \`audio_url\` and \`file.file_url\`. Gemini and
Bedrock Converse read video and sound inline, chat completions of vendors other than OpenAI read \`video_url\`, and Gemini reads
videos of YouTube by URL. OpenAI Responses gets them as files, Anthropic files by URL as documents, and the vendor judges. For other URLs
see [\`fetch_media\`](configuration.md#fetch_media); the rest is answered 400 \`untranslatable\`.
Data of the type \`application/octet-stream\` has the type that its name or its first bytes show, and so does an image as base64 alone.

Members of parts and tools that no format in common has (\`video_url.fps\`, \`image_url.min_pixels\`, \`videoMetadata\`) are lost: \`x-sluice-lost\`
names them by their path, \`messages.video_url.fps\`. Empty ones, \`false\` and \`auto\` do not count.
`

const REPLIES_INTRODUCTION = `
The outcome for replies, whole and streamed. Replies of OpenAI's chat completions are passed through unchanged. Losses of a
reply are reported in the log and the metric, and in the header of a whole reply.
`

const FIELDS_INTRODUCTION = `
The name of each scalar field in each format, with the values that the gateway accepts from clients and the default that it
assumes. A field that a format lacks is lost (○), refused (✕) or without effect (·), unless it has the default.
`

const PAIRS_INTRODUCTION = `
Every client format works with every upstream dialect. The numbers of concepts per format, in this order: ● kept, ◐ emulated,
○ lost, ✕ rejected, · nothing to translate. Between equal formats, requests and replies are passed through unchanged.
`

const WORDS: readonly Outcome[] = ['kept', 'emulated', 'lost', 'rejected', 'needless']

/** The number of concepts with each outcome, per pair of client format and upstream dialect. */
function pairs(catalogue: Catalogue): string[] {
  const chats = COLUMNS.map((column) =>
    countsOf(CHAT_CONCEPTS, (concept) =>
      shownOutcome(concept, column, requestOutcome(concept, column, catalogue)),
    ),
  )
  const rows = CLIENTS.map(({ title, path, plain, concepts }) => {
    const cells = COLUMNS.map(({ dialect, model }) => {
      const facts = factsFor(catalogue, model)
      return countsOf(
        concepts,
        ({ base, members }) =>
          translateRequestConcept({ ...plain, ...base }, members, { dialect, facts, path }).outcome,
      )
    })
    return `| ${title} | ${cells.join(' | ')} |`
  })
  return [
    `| client | ${COLUMNS.map(({ title }) => title).join(' | ')} |`,
    `| --- |${COLUMNS.map(() => ' --- |').join('')}`,
    `| Chat completions (\`POST /v1/chat/completions\`) | ${chats.join(' | ')} |`,
    ...rows,
  ]
}

function countsOf<T>(concepts: readonly T[], outcomeOf: (concept: T) => Outcome): string {
  const outcomes = concepts.map(outcomeOf)
  return WORDS.map((word) => outcomes.filter((outcome) => outcome === word).length).join(' / ')
}

const CHAT_CONCEPTS: readonly RequestConcept[] = REQUEST_GROUPS.flatMap(({ concepts }) => concepts)

/** Tables of the other client formats. */
function clientTables(catalogue: Catalogue): string[] {
  return CLIENTS.flatMap(({ title, path, plain, concepts }) => [
    `## Requests: ${title}`,
    '',
    ...table(COLUMNS, concepts, ({ base, members }, { dialect, model }) => {
      const facts = factsFor(catalogue, model)
      const found = translateRequestConcept({ ...plain, ...base }, members, {
        dialect,
        facts,
        path,
      })
      const isForeign = found.outcome === 'kept' && resolveEndpoint('POST', path)?.dialect !== dialect
      return joined(SIGNS[found.outcome], [isForeign ? pathsText(found.at) : undefined])
    }),
    '',
  ])
}

/** A row for each scalar member, from the tables that decoders and encoders read. */
function fieldsTable(): string[] {
  return [
    `| field | ${COLUMNS.map(({ title }) => title).join(' | ')} |`,
    `| --- |${COLUMNS.map(() => ' --- |').join('')}`,
    ...Object.entries(SCALAR_NAMES).map(([canonical, name]) => {
      const cells = COLUMNS.map(({ dialect }) =>
        fieldsOf(dialect)
          .filter((field) => field.canonical === canonical)
          .map(fieldText)
          .join('<br>'),
      )
      return `| \`${name}\` | ${cells.join(' | ')} |`
    }),
  ]
}

function fieldText({ wire, check, default: value, loss }: ScalarField): string {
  const standard = value === undefined ? [] : [`default ${JSON.stringify(value)}`]
  if (wire === null) {
    const sign = loss === 'none' ? SIGNS.needless : loss === 'reported' ? SIGNS.lost : SIGNS.rejected
    return joined(sign, standard)
  }
  const rule = check === null ? [] : [check.rule]
  return [`\`${wire}\``, ...rule, ...standard].join('; ')
}

/** The number of a chat request's concepts with each outcome. */
function overviewTable(catalogue: Catalogue): string[] {
  const concepts = CHAT_CONCEPTS
  const rows = COLUMNS.map((column) => {
    const counts = new Map<Outcome, number>()
    for (const concept of concepts) {
      const outcome = shownOutcome(concept, column, requestOutcome(concept, column, catalogue))
      counts.set(outcome, (counts.get(outcome) ?? 0) + 1)
    }
    return `| ${column.title} | ${WORDS.map((outcome) => counts.get(outcome) ?? 0).join(' | ')} |`
  })
  return [
    `| of ${concepts.length} concepts | ● kept | ◐ emulated | ○ lost | ✕ rejected | · nothing to translate |`,
    '| --- | --: | --: | --: | --: | --: |',
    ...rows,
  ]
}

/** A concept that arrives by other means is emulated, even if nothing is lost. */
function shownOutcome(
  { emulated }: RequestConcept,
  { dialect }: Column,
  { outcome }: TranslationOutcome,
): Outcome {
  return outcome === 'kept' && emulated?.[dialect] !== undefined ? 'emulated' : outcome
}

function table<T extends { readonly name: string }>(
  columns: readonly Column[],
  concepts: readonly T[],
  cell: (concept: T, column: Column) => string,
): string[] {
  return [
    `| | ${columns.map(({ title }) => title).join(' | ')} |`,
    `| --- |${columns.map(() => ' --- |').join('')}`,
    ...concepts.map(
      (concept) => `| ${concept.name} | ${columns.map((column) => cell(concept, column)).join(' | ')} |`,
    ),
  ]
}

function requestCell(concept: RequestConcept, column: Column, catalogue: Catalogue): string {
  const found = requestOutcome(concept, column, catalogue)
  const outcome = shownOutcome(concept, column, found)
  const note = concept.notes?.[column.dialect]
  if (outcome === 'emulated') return joined(SIGNS.emulated, [concept.emulated?.[column.dialect], note])
  const showsPath = outcome === 'kept' && column.dialect !== 'openai-chat'
  return joined(SIGNS[outcome], [showsPath ? pathsText(found.at) : undefined, note])
}

function replyCell(concept: ReplyConcept, column: Column, catalogue: Catalogue): string {
  const found = replyOutcome(concept, column, catalogue)
  if (found === null) return ''
  const where = found.outcome === 'kept' ? pathsText(found.at) : undefined
  return joined(SIGNS[found.outcome], [where, concept.notes?.[column.dialect]])
}

/** The paths of a concept, without expected ones. */
function pathsText(at: readonly string[]): string | undefined {
  const paths = at.map((path) => path.replace(/^choices\./, '')).filter((path) => !EXPECTED_PATHS.test(path))
  const [first, ...more] = paths
  if (first === undefined) return undefined
  return [first, ...more.slice(0, 1)].map((path) => `\`${path}\``).join(', ')
}

/** Paths that are not listed: messages and tools, and the endpoint's path, which differs for streams. */
const EXPECTED_PATHS = /^(?:path|messages|contents|input|tools|message\.content|usage\.total_tokens)(?:\.|$)/

function joined(sign: string, texts: readonly (string | undefined)[]): string {
  const parts = texts.filter((text) => text !== undefined)
  return parts.length === 0 ? sign : `${sign} ${parts.join('; ')}`
}
