/** One request in each client format: where it goes, its headers and its body. Pure. */

/** What a request is sent to, and with which key. */
export interface Target {
  /** The address that clients use, with `/v1`. */
  readonly base: string
  readonly model: string
  /** The secret itself, while it is shown, or `KEY_PLACE`. */
  readonly key: string
}

/** Stands for a key that is not known here: a variable of the environment. */
export const KEY_PLACE = '$SLUICE_KEY'

/** The address of the gateway as clients know it. */
export function baseOf(publicUrl: string | null): string {
  return `${(publicUrl ?? window.location.origin).replace(/\/$/, '')}/v1`
}

/** A message of a conversation. */
export interface FormatMessage {
  readonly role: 'system' | 'user' | 'assistant'
  readonly content: string
}

/** What is asked, whatever the format. */
export interface FormatRequest {
  readonly messages: readonly FormatMessage[]
  readonly temperature?: number | undefined
  readonly maxTokens?: number | undefined
}

/** A first call. */
export const HELLO: FormatRequest = { messages: [{ role: 'user', content: 'Name three rivers.' }] }

/** The formats that the gateway takes, by their name in ledger entries. */
export const FORMATS = [
  { id: 'chat', name: 'Chat completions' },
  { id: 'responses', name: 'Responses' },
  { id: 'messages', name: 'Messages' },
  { id: 'gemini', name: 'Gemini' },
] as const

/** The name of a client format. */
export type Format = (typeof FORMATS)[number]['id']

/** A request as a client of one format sends it. */
export interface FormattedRequest {
  readonly url: string
  /** The key is a part of one of the values. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  /** JSON, without members that are undefined. */
  readonly body: Readonly<Record<string, unknown>>
}

/** The request in a format. */
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
