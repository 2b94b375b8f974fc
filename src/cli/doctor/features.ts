/**
 * The features that `sluice doctor` tries on an upstream: for each a request of chat completions, what its
 * reply must show, and the edits of bodies (`quirks`) that help vendors which refuse it.
 */
import { arrayOf, objectOf, stringOf, type JsonObject, parsedJson, isObject } from '../../base/json.js'
import type { QuirksConfig } from '../../config/config.js'
import type { ModelFacts } from '../../formats/chat/model-facts.js'
import { PICTURE } from '../rehearse/checks.js'
import type { ProbeReply } from './probe.js'

/** Some of the quirks of an upstream, in the form of the file. */
export type Fix = Partial<Pick<QuirksConfig, 'drop' | 'rename'>> & {
  readonly messages?: Pick<QuirksConfig['messages'], 'roles'>
}

/** A feature that is tried with one request. */
export interface Feature {
  readonly name: string
  /** Members of the request beside `model`, and those of `USUAL` that are not here. */
  readonly body: JsonObject
  /** How the reply differs from what the request is for; null: it does not. */
  readonly differs: (reply: ProbeReply) => string | null
  /** Quirks of upstreams in the chat-completions format that may fix a refusal, in the order of trial. */
  readonly fixes: readonly Fix[]
  /** Why the model cannot have the feature; null: it can. Absent: every model can. */
  readonly unfit?: (facts: ModelFacts) => string | null
}

/** Enough for models that always reason, whose reasoning counts as output. */
const MAX_TOKENS = 256
const MAX_TOKENS_REASONING = 512
const HELLO = [{ role: 'user', content: 'Say hello in one short sentence.' }]
const CITY: JsonObject = {
  type: 'object',
  properties: { city: { type: 'string' } },
  required: ['city'],
  additionalProperties: false,
}
/** The 64 characters that OpenAI takes; some vendors take fewer. */
const LONG_NAME = `get_weather_${'of_one_city_'.repeat(4)}_now`

/** What a request has beside the members of its feature, if those do not limit the reply. */
export const WITHOUT_LIMIT: JsonObject = { messages: HELLO }
/** The same with a limit of the reply. */
export const USUAL: JsonObject = { ...WITHOUT_LIMIT, max_tokens: MAX_TOKENS }

/** The features that are tried in this order, after `models` and before `embeddings`. */
export const FEATURES: readonly Feature[] = [
  {
    name: 'chat',
    body: {},
    differs: withText,
    fixes: [{ rename: { max_tokens: 'max_completion_tokens' } }],
  },
  {
    name: 'max_completion_tokens',
    body: { max_completion_tokens: MAX_TOKENS },
    differs: withText,
    fixes: [{ rename: { max_completion_tokens: 'max_tokens' } }],
  },
  {
    name: 'developer_role',
    body: { messages: [{ role: 'developer', content: 'Answer in English.' }, ...HELLO] },
    differs: withText,
    fixes: [{ messages: { roles: { developer: 'system' } } }],
  },
  {
    name: 'stream',
    body: { stream: true },
    differs: withText,
    fixes: [{ drop: ['stream_options'] }],
  },
  {
    name: 'stream_usage',
    body: { stream: true, stream_options: { include_usage: true } },
    differs: ({ entry }) => {
      if (entry === null || entry.source === 'reported') return null
      return 'the stream ends without the counts of its tokens: Sluice estimates them'
    },
    fixes: [{ drop: ['stream_options'] }],
  },
  {
    name: 'tools',
    body: askFor('What is the weather in Paris? Use the tool get_weather.', ['get_weather']),
    differs: (reply) => calling(reply, ['get_weather']),
    fixes: [],
  },
  {
    name: 'parallel_tools',
    body: {
      ...askFor('Call get_weather for Paris and get_time for Paris in parallel, in one turn.', [
        'get_weather',
        'get_time',
      ]),
      parallel_tool_calls: true,
    },
    differs: (reply) => calling(reply, ['get_weather', 'get_time']),
    fixes: [{ drop: ['parallel_tool_calls'] }],
  },
  {
    name: 'tool_choice_required',
    body: { ...askFor('Say hello to Paris.', ['get_weather']), tool_choice: 'required' },
    differs: (reply) => calling(reply, ['get_weather']),
    fixes: [{ drop: ['tool_choice'] }],
  },
  {
    name: 'long_tool_names',
    body: askFor(`What is the weather in Paris? Use the tool.`, [LONG_NAME]),
    differs: (reply) => calling(reply, [LONG_NAME]),
    fixes: [],
  },
  {
    name: 'json_object',
    body: {
      messages: [{ role: 'user', content: 'Reply with a JSON object with the member "city" for Paris.' }],
      response_format: { type: 'json_object' },
    },
    differs: ({ text }) => (isObject(parsedJson(text)) ? null : 'the reply is not a JSON object'),
    fixes: [{ drop: ['response_format'] }],
  },
  {
    name: 'json_schema',
    body: {
      messages: [{ role: 'user', content: 'Name the capital of France.' }],
      response_format: { type: 'json_schema', json_schema: { name: 'city', schema: CITY, strict: true } },
    },
    differs: ({ text }) => {
      const value = parsedJson(text)
      const fits = isObject(value) && typeof value['city'] === 'string' && Object.keys(value).length === 1
      return fits ? null : 'the reply does not match the schema'
    },
    fixes: [{ drop: ['response_format'] }],
  },
  {
    name: 'image',
    body: {
      messages: [
        {
          role: 'user',
          content: [
            { type: 'image_url', image_url: { url: `data:image/png;base64,${PICTURE}`, detail: 'low' } },
            { type: 'text', text: 'Which colour fills it? One word.' },
          ],
        },
      ],
    },
    differs: ({ text }) => {
      // The emulator does not decode images: it reports their number.
      const isSeen = /\bred\b/i.test(text) || text.includes('1 image (image/png)')
      return isSeen ? null : 'the reply does not name the colour of the image'
    },
    fixes: [],
    unfit: ({ vision }) => (vision === false ? 'the catalogue has no images for this model' : null),
  },
  {
    name: 'reasoning',
    body: { reasoning_effort: 'low', max_tokens: MAX_TOKENS_REASONING },
    differs: ({ entry, hasReasoning }) => {
      if (hasReasoning || (entry?.usage.reasoning ?? 0) > 0) return null
      return 'the reply has no reasoning and counts none'
    },
    fixes: [{ drop: ['reasoning_effort'] }],
    unfit: ({ reasoning }) => (reasoning === false ? 'the catalogue has no reasoning for this model' : null),
  },
]

function askFor(content: string, names: readonly string[]): JsonObject {
  return {
    messages: [{ role: 'user', content }],
    tools: names.map((name) => ({
      type: 'function',
      function: { name, description: 'Something about a city', parameters: CITY },
    })),
  }
}

function withText({ text }: ProbeReply): string | null {
  return text === '' ? 'the reply has no text' : null
}

function calling({ calls }: ProbeReply, names: readonly string[]): string | null {
  const called = calls.map(({ name }) => name)
  const missing = names.filter((name) => !called.includes(name))
  if (missing.length > 0) {
    return called.length === 0
      ? 'the reply has no tool call'
      : `the reply calls ${called.join(', ')}, not ${missing.join(', ')}`
  }
  const wrong = calls.find(({ json }) => stringOf(objectOf(parsedJson(json))['city']) === undefined)
  return wrong === undefined ? null : `the arguments of ${wrong.name} do not match its schema: ${wrong.json}`
}

/**
 * The quirks that drop an optional member of the request which the vendor's message names; for any dialect.
 */
export function fixesByMessage(message: string, sent: JsonObject): Fix[] {
  const words = new Set(message.split(/\W+/))
  const needed = new Set(['model', 'messages', 'tools', 'stream', 'max_tokens', 'input'])
  return Object.keys(sent)
    .filter((key) => !needed.has(key) && words.has(key))
    .map((key) => ({ drop: [key] }))
}

/** Both quirks in one; of a key that both rename, the later name. */
export function joinFixes(first: Fix, second: Fix): Fix {
  const roles = { ...first.messages?.roles, ...second.messages?.roles }
  const rename = { ...first.rename, ...second.rename }
  const drop = [...new Set([...arrayOf(first.drop), ...arrayOf(second.drop)])].map(String)
  return {
    ...(drop.length > 0 ? { drop } : {}),
    ...(Object.keys(rename).length > 0 ? { rename } : {}),
    ...(Object.keys(roles).length > 0 ? { messages: { roles } } : {}),
  }
}
