/** Requests with many members in every client format, and the places in them that a test changes. */
import { isObject, stringOf, type JsonObject, type JsonValue } from '../../src/base/json.js'
import { fixturesFolder, recordings } from '../helpers/fixtures.js'

const schema = { type: 'object', properties: { city: { type: 'string', description: 'The city' } } }
/** An endpoint of each format. */
export const PATHS = {
  chat: '/v1/chat/completions',
  messages: '/v1/messages',
  responses: '/v1/responses',
  gemini: '/v1beta/models/gemini-2.5-flash:generateContent',
  completions: '/v1/completions',
}

/** A request of each format with as many members as possible. */
export const BODIES: readonly (readonly [path: string, body: JsonObject])[] = [
  [
    PATHS.chat,
    {
      model: 'gpt-5.4',
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', name: 'Ann', content: [{ type: 'text', text: 'Weather?' }] },
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ id: 'c1', type: 'function', function: { name: 'look', arguments: '{"city":"B"}' } }],
        },
        { role: 'tool', tool_call_id: 'c1', content: 'sun' },
      ],
      tools: [{ type: 'function', function: { name: 'look', description: 'Looks', parameters: schema } }],
      prediction: { type: 'content', content: 'Sun' },
      stop: ['END'],
      metadata: { a: 'b' },
      response_format: { type: 'json_schema', json_schema: { name: 'r', description: 'd', schema } },
    },
  ],
  [
    PATHS.messages,
    {
      model: 'claude-opus-5',
      max_tokens: 100,
      system: [{ type: 'text', text: 'Be brief.' }],
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'Weather?' },
            {
              type: 'document',
              title: 'Report',
              context: 'Old',
              source: { type: 'text', media_type: 'text/plain', data: 'It was dry.' },
            },
          ],
        },
        {
          role: 'assistant',
          content: [
            {
              type: 'text',
              text: 'Dry.',
              citations: [
                {
                  type: 'char_location',
                  cited_text: 'dry',
                  document_index: 0,
                  document_title: 'Report',
                  start_char_index: 7,
                  end_char_index: 10,
                },
              ],
            },
            { type: 'tool_use', id: 't1', name: 'look', input: { city: 'B' } },
          ],
        },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't1', content: 'sun' }] },
      ],
      stop_sequences: ['END'],
      tools: [{ name: 'look', description: 'Looks', input_schema: schema }],
      metadata: { user_id: 'u' },
    },
  ],
  [
    PATHS.responses,
    {
      model: 'gpt-4.1',
      instructions: 'Be brief.',
      input: [
        { role: 'user', content: [{ type: 'input_text', text: 'Weather?' }] },
        { type: 'function_call', call_id: 'c1', name: 'look', arguments: '{"city":"B"}' },
        { type: 'function_call_output', call_id: 'c1', output: 'sun' },
      ],
      tools: [{ type: 'function', name: 'look', description: 'Looks', parameters: schema }],
      text: { format: { type: 'json_schema', name: 'r', description: 'd', schema } },
      store: false,
    },
  ],
  [
    PATHS.gemini,
    {
      systemInstruction: { parts: [{ text: 'Be brief.' }] },
      contents: [
        { role: 'user', parts: [{ text: 'Weather?' }] },
        { role: 'model', parts: [{ functionCall: { name: 'look', args: { city: 'B' } } }] },
        { role: 'user', parts: [{ functionResponse: { name: 'look', response: { output: 'sun' } } }] },
      ],
      tools: [
        {
          functionDeclarations: [
            { name: 'look', description: 'Looks', parameters: schema, response: schema },
          ],
        },
      ],
      generationConfig: { stopSequences: ['END'], temperature: 0 },
    },
  ],
  [PATHS.completions, { model: 'gpt-3.5-turbo-instruct', prompt: 'Once', suffix: 'end', stop: 'END' }],
]

/** A member that no format has. */
export const NEW_MEMBER = 'x_note'

type Place = readonly string[]

/** Every scalar of a value, and a new member of each of its objects. */
export function* placesIn(value: JsonValue, path: Place = []): Generator<Place> {
  if (Array.isArray(value)) {
    for (const [at, item] of value.entries()) yield* placesIn(item, [...path, String(at)])
  } else if (isObject(value)) {
    yield [...path, NEW_MEMBER]
    for (const [key, member = null] of Object.entries(value)) yield* placesIn(member, [...path, key])
  } else yield path
}

/** The value at a place; undefined for a new member. */
export function valueAt(body: JsonObject, place: Place): JsonValue | undefined {
  return place.reduce<JsonValue | undefined>((value, key) => {
    if (Array.isArray(value)) return value[Number(key)]
    return isObject(value) ? value[key] : undefined
  }, body)
}

/** A copy with another value at the place. */
export function changed(body: JsonObject, place: Place, value: JsonValue): JsonObject {
  const copy = structuredClone(body)
  const last = place.at(-1) ?? ''
  const holder = valueAt(copy, place.slice(0, -1))
  if (Array.isArray(holder)) holder[Number(last)] = value
  else if (isObject(holder)) holder[last] = value
  return copy
}

/** The endpoint of a recording's address; null if clients have none. */
function endpointOf(url: string): string | null {
  if (/\/(?:chat\/completions|responses|messages)$/.test(url)) {
    return `/v1/${url.replace(/^.*\/(chat\/completions|responses|messages)$/, '$1')}`
  }
  const model = /models\/([^/:]+:(?:generateContent|streamGenerateContent))/.exec(url)?.[1]
  return model === undefined ? null : `/v1beta/models/${model}`
}

/** The recorded requests in formats of clients; none without recordings. */
export function* recordedRequests(): Generator<{ readonly path: string; readonly body: JsonObject }> {
  const folder = fixturesFolder()
  if (folder === null) return
  for (const { recording } of recordings(folder)) {
    if (!isObject(recording)) continue
    const { url, request_body: body } = recording
    const path = endpointOf(stringOf(url) ?? '')
    if (path !== null && isObject(body)) yield { path, body }
  }
}
