/** A request in each client format: its URL, headers and body. Pure. */

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
export interface FormatMessage {
  readonly role: 'system' | 'user' | 'assistant'
  readonly content: string
}

/** A request, independent of the format. */
export interface FormatRequest {
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

/** Formats a request. */
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
