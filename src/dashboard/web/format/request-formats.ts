/** A request in each client format: its URL, headers and body, and the values below its key. Pure. */
import type { RequestRow } from '../../../control/dashboard/schema/schema.js'

/** The address and key of a request. */
export interface Target {
  /** The gateway's address for clients, with `/v1`. */
  readonly base: string
  readonly model: string
  /** The secret while it is shown, or `KEY_PLACEHOLDER`. */
  readonly key: string
}

/** The placeholder for an unknown key: an environment variable. */
export const KEY_PLACEHOLDER = '$SLUICE_KEY'

/** The gateway's address for clients. */
export function baseOf(publicUrl: string | null): string {
  return `${(publicUrl ?? window.location.origin).replace(/\/$/, '')}/v1`
}

/** A message of a conversation. */
interface FormatMessage {
  readonly role: 'system' | 'user' | 'assistant'
  readonly content: string
}

/** A request, independent of the format. */
interface FormatRequest {
  readonly messages: readonly FormatMessage[]
  readonly temperature?: number | undefined
  readonly maxTokens?: number | undefined
}

/** The example request. */
export const HELLO: FormatRequest = { messages: [{ role: 'user', content: 'Name three rivers.' }] }

/** The client formats, by their id in ledger entries. */
export const FORMATS = [
  { id: 'chat', name: 'Chat completions' },
  { id: 'responses', name: 'Responses' },
  { id: 'messages', name: 'Messages' },
  { id: 'gemini', name: 'Gemini' },
] as const

/** The id of a client format. */
export type Format = (typeof FORMATS)[number]['id']

/** A request in one client format. */
export interface FormattedRequest {
  readonly url: string
  /** One of the values contains the key. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  /** JSON; undefined members are omitted. */
  readonly body: Readonly<Record<string, unknown>>
}

export function inFormat(format: Format, target: Target, request: FormatRequest): FormattedRequest {
  const { path, headers, body } = PARTS[format](target, request)
  const json = JSON.parse(JSON.stringify(body)) as Record<string, unknown>
  return { url: target.base.replace(/\/v1$/, '') + path, headers, body: json }
}

interface Parts {
  readonly path: string
  readonly headers: FormattedRequest['headers']
  readonly body: object
}

const PARTS: Readonly<Record<Format, (target: Target, request: FormatRequest) => Parts>> = {
  chat: ({ model, key }, { messages, temperature, maxTokens }) => ({
    path: '/v1/chat/completions',
    headers: [['authorization', `Bearer ${key}`]],
    body: { model, messages, temperature, max_completion_tokens: maxTokens },
  }),
  responses: ({ model, key }, request) => ({
    path: '/v1/responses',
    headers: [['authorization', `Bearer ${key}`]],
    body: {
      model,
      instructions: systemOf(request),
      input: turnsOf(request),
      temperature: request.temperature,
      max_output_tokens: request.maxTokens,
    },
  }),
  messages: ({ model, key }, request) => ({
    path: '/v1/messages',
    headers: [
      ['x-api-key', key],
      ['anthropic-version', '2023-06-01'],
    ],
    body: {
      model,
      // Required by the format.
      max_tokens: request.maxTokens ?? 1024,
      system: systemOf(request),
      messages: turnsOf(request),
      temperature: request.temperature,
    },
  }),
  gemini: ({ model, key }, request) => {
    const { temperature, maxTokens } = request
    const system = systemOf(request)
    const isSet = temperature !== undefined || maxTokens !== undefined
    return {
      path: `/v1beta/models/${encodeURIComponent(model)}:generateContent`,
      headers: [['x-goog-api-key', key]],
      body: {
        systemInstruction: system === undefined ? undefined : { parts: [{ text: system }] },
        contents: turnsOf(request).map(({ role, content }) => {
          return { role: role === 'assistant' ? 'model' : 'user', parts: [{ text: content }] }
        }),
        generationConfig: isSet ? { temperature, maxOutputTokens: maxTokens } : undefined,
      },
    }
  },
}

function systemOf({ messages }: FormatRequest): string | undefined {
  const texts = messages.filter(({ role }) => role === 'system').map(({ content }) => content)
  return texts.length === 0 ? undefined : texts.join('\n')
}

function turnsOf({ messages }: FormatRequest): readonly FormatMessage[] {
  return messages.filter(({ role }) => role !== 'system')
}

/** Names of client formats, and of endpoints with a format of their own, by their id in ledger entries. */
export const FORMAT_NAMES: Readonly<Record<string, string>> = {
  chat: 'Chat completions',
  completions: 'Completions',
  messages: 'Messages',
  responses: 'Responses',
  gemini: 'Gemini',
  embeddings: 'Embeddings',
  rerank: 'Rerank',
  moderations: 'Moderations',
  images: 'Images',
  image_edits: 'Image edits',
  transcriptions: 'Transcriptions',
  translations: 'Translations',
  speech: 'Speech',
  files: 'Files',
  batches: 'Batches',
  native: 'Native access',
}

/** The languages in display order. */
export const LANGUAGES = ['curl', 'Python', 'JavaScript'] as const

/** The name of a language. */
type Language = (typeof LANGUAGES)[number]

/**
 * The request as code for a shell, Python or JavaScript, which runs without changes and without packages.
 * Pure.
 */
export function snippet(language: Language, request: FormattedRequest): string {
  switch (language) {
    case 'curl':
      return curl(request)
    case 'Python':
      return python(request)
    case 'JavaScript':
      return javascript(request)
  }
}

/** Uses double quotes around the key's variable, so that the shell expands it. */
function curl({ url, headers, body }: FormattedRequest): string {
  const lines = [...headers, JSON_TYPE].map(([name, value]) => {
    const quote = value.includes(KEY_PLACEHOLDER) ? '"' : "'"
    return `  -H ${quote}${name}: ${value}${quote} \\`
  })
  const json = JSON.stringify(body).replaceAll("'", "'\\''")
  return [`curl ${url} \\`, ...lines, `  -d '${json}'`].join('\n')
}

function python({ url, headers, body }: FormattedRequest): string {
  const all = [...headers, JSON_TYPE]
  const values = all.map(([name, value]) => {
    return `        ${JSON.stringify(name)}: ${withKey(value, 'os.environ["SLUICE_KEY"]')},`
  })
  const hasKey = all.some(([, value]) => value.includes(KEY_PLACEHOLDER))
  return [
    `import json${hasKey ? ', os' : ''}, urllib.request`,
    '',
    `body = ${pythonText(body)}`,
    'request = urllib.request.Request(',
    `    ${JSON.stringify(url)},`,
    '    data=json.dumps(body).encode(),',
    '    headers={',
    ...values,
    '    },',
    ')',
    'with urllib.request.urlopen(request) as reply:',
    '    print(json.dumps(json.load(reply), indent=2))',
  ].join('\n')
}

function pythonText(value: unknown): string {
  if (value === true) return 'True'
  if (value === false) return 'False'
  if (value === null) return 'None'
  if (Array.isArray(value)) return `[${value.map(pythonText).join(', ')}]`
  if (typeof value !== 'object') return JSON.stringify(value)
  const members = Object.entries(value).map(([name, one]) => `"${name}": ${pythonText(one)}`)
  return `{${members.join(', ')}}`
}

function javascript({ url, headers, body }: FormattedRequest): string {
  const values = [...headers, JSON_TYPE].map(([name, value]) => {
    return `    ${JSON.stringify(name)}: ${withKey(value, 'process.env.SLUICE_KEY')},`
  })
  return [
    `const reply = await fetch(${JSON.stringify(url)}, {`,
    "  method: 'POST',",
    '  headers: {',
    ...values,
    '  },',
    `  body: JSON.stringify(${JSON.stringify(body)}),`,
    '})',
    'console.log(JSON.stringify(await reply.json(), null, 2))',
  ].join('\n')
}

const JSON_TYPE = ['content-type', 'application/json'] as const

/** A text of code with a variable instead of the key. */
function withKey(value: string, variable: string): string {
  const [before = '', after] = value.split(KEY_PLACEHOLDER)
  if (after === undefined) return JSON.stringify(value)
  return before === '' ? variable : `${JSON.stringify(before)} + ${variable}`
}

/** The values of dimensions of a request, as `name=value`. */
export function dimensionsOf({ dimensions }: Pick<RequestRow, 'dimensions'>): string[] {
  return (dimensions ?? '').split(' ').filter(Boolean).map(decodeURIComponent)
}
