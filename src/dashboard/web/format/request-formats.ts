/** One request of the playground in each client format: where it goes, its headers and its body. */
import type { Target } from './snippets.js'

/** A message of a conversation. */
export interface FormatMessage {
  readonly role: string
  readonly content: string
}

/** What is asked, in no format's words. */
export interface FormatRequest {
  readonly messages: readonly FormatMessage[]
  readonly temperature?: number | undefined
  readonly maxTokens?: number | undefined
}

/** A request as a client of one format sends it. */
export interface FormattedRequest {
  readonly name: string
  /** Below the address of the gateway. */
  readonly path: string
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body: object
}

/** The same request in the four client formats. Members that are undefined are left out of the JSON. */
export function inEachFormat(target: Target, request: FormatRequest): FormattedRequest[] {
  const { model, key } = target
  const { messages, temperature, maxTokens } = request
  const system = messages.filter(({ role }) => role === 'system').map(({ content }) => content)
  const turns = messages.filter(({ role }) => role !== 'system')
  const instructions = system.length === 0 ? undefined : system.join('\n')
  const bearer = ['authorization', `Bearer ${key}`] as const
  const contents = turns.map(({ role, content }) => {
    return { role: role === 'assistant' ? 'model' : 'user', parts: [{ text: content }] }
  })
  const config = { temperature, maxOutputTokens: maxTokens }
  return [
    {
      name: 'Chat completions',
      path: '/v1/chat/completions',
      headers: [bearer],
      body: { model, messages, temperature, max_completion_tokens: maxTokens },
    },
    {
      name: 'Responses',
      path: '/v1/responses',
      headers: [bearer],
      body: { model, instructions, input: turns, temperature, max_output_tokens: maxTokens },
    },
    {
      name: 'Messages',
      path: '/v1/messages',
      headers: [
        ['x-api-key', key],
        ['anthropic-version', '2023-06-01'],
      ],
      // The format wants a limit.
      body: {
        model,
        max_tokens: maxTokens ?? 1024,
        system: instructions,
        messages: turns,
        temperature,
      },
    },
    {
      name: 'Gemini',
      path: `/v1beta/models/${encodeURIComponent(model)}:generateContent`,
      headers: [['x-goog-api-key', key]],
      body: {
        systemInstruction: instructions && { parts: [{ text: instructions }] },
        contents,
        generationConfig: temperature === undefined && maxTokens === undefined ? undefined : config,
      },
    },
  ]
}

/** The request for a shell. A key that is a variable is quoted so that the shell reads it. */
export function curlOf({ base }: Target, { path, headers, body }: FormattedRequest): string {
  const json = JSON.stringify(body).replaceAll("'", "'\\''")
  return [
    `curl ${base.replace(/\/v1$/, '')}${path} \\`,
    ...headers.map(([name, value]) => `  -H "${name}: ${value}" \\`),
    `  -H 'content-type: application/json' \\`,
    `  -d '${json}'`,
  ].join('\n')
}
