/**
 * Goal: a chat client that continues a recorded conversation through the gateway sends the provider the same
 * turns, whether it sends reasoning state back or drops it.
 * Method: the first reply is translated for the client; the second request is built from the recorded one's
 * other turns and that message and translated back; its model turns are compared with the recorded ones,
 * signatures included.
 */
import t from 'tap'
import { Fold } from '../../../src/formats/chat/fold.js'
import {
  arrayOf,
  isObject,
  type JsonObject,
  type JsonValue,
  objectOf,
  stringOf,
} from '../../../src/base/json.js'
import type { ChatRequest } from '../../../src/formats/chat/request.js'
import { createCatalogue, factsFor } from '../../../src/config/catalogue.js'
import { upstreamCodecOf, clientCodecOf } from '../../../src/formats/index.js'
import { Escrow } from '../../../src/gateway/reasoning/escrow.js'
import { SseFramer } from '../../../src/formats/wire/frames/sse-framer.js'
import { fixtures, skipWithoutFixtures, type Recording } from '../../helpers/fixtures.js'
import { FakeSharedCache } from '../../gateway/reasoning/fake-shared-cache.js'

/** Expected differences, each with its reason. */
const EXCEPTIONS: Readonly<Record<string, string>> = {
  'gemini/google__test_structured_output__test_function_tools_with_builtin_tools.2':
    'the model called a function before it used a tool of its own; our calls stand last in a turn',
  'gemini/openinference__test_instrumentor__test_sub_agent_session_id_not_overwritten_by_adk_internal_uuid.3':
    "goes on from another agent's conversation",
  'gemini/test_google__test_google_model_file_search_grounding_gemini_3[True].5':
    "the recorded client filled in the arguments and the result of a tool of Gemini's own",
  'openai/test_openai_responses__test_openai_responses_model_file_search_tool.5':
    "the recorded client leaves out what a tool of OpenAI's own did",
  'openai/test_openai_responses__test_openai_responses_stream.2':
    'the recorded client names the call by the id of its item',
  'openai/test_tool_search__test_openai_client_tool_search_streaming.2':
    'the model requests a search for tools from the client, which no chat client has',
  'gemini/test_google__test_google_model_thinking_part.2':
    'the recorded client sends thoughts without a signature back; they are text for people',
}

/** A recorded reply and the recorded request that continues it. */
interface Pair {
  readonly name: string
  readonly first: Recording
  readonly second: Recording
}

/** Consecutive recordings, the second of which has turns of the model. */
function pairs(provider: string, apis: readonly string[], turns: (body: JsonObject) => JsonObject[]): Pair[] {
  const all = apis.flatMap((api) => fixtures({ provider, api, status: 200 }))
  const byName = new Map(all.map((recording) => [recording.name, recording]))
  return all.flatMap((second) => {
    const [, stem = '', number = '0'] = /^(.*)\.(\d+)$/.exec(second.name) ?? []
    const first = byName.get(`${stem}.${Number(number) - 1}`)
    if (first === undefined) return []
    const before = turns(objectOf(first.request_body))
    const after = turns(objectOf(second.request_body))
    // The second continues the first if the model's reply to it is its first turn.
    return before.length === 0 && after.length === 1
      ? [{ name: `${provider}/${second.name}`, first, second }]
      : []
  })
}

const client = clientCodecOf('openai-chat')
const SEED = { id: 'chatcmpl-1', createdAtSeconds: 1, model: 'm' }
/** Facts of a model that follow from its name. */
const NO_MODELS = createCatalogue([])
const NO_LOSSES = { drop: (): void => undefined }

function requestOf(messages: JsonValue[], model: string): ChatRequest {
  return { ...client.decodeRequest({ model: 'm', messages }, { operation: 'chat' }), model }
}

/** A pair's formats: how a recorded turn is found and compared. */
interface Form {
  readonly dialect: 'anthropic' | 'gemini' | 'openai-responses'
  readonly provider: string
  readonly apis: readonly string[]
  readonly turns: (body: JsonObject) => JsonObject[]
  /** The compared form of a turn, for both sides. */
  readonly plain: (turn: JsonObject) => JsonValue[]
}

const FORMS: readonly Form[] = [
  {
    dialect: 'anthropic',
    provider: 'anthropic',
    apis: ['messages'],
    turns: (body) =>
      arrayOf(body.messages)
        .map(objectOf)
        .filter(({ role }) => role === 'assistant'),
    plain: ({ content }) =>
      joined(
        (typeof content === 'string' ? [{ type: 'text', text: content }] : arrayOf(content))
          .map(objectOf)
          .map((block) => without(block, ['caller', 'cache_control', 'citations'])),
        ({ type }) => type === 'text',
      ),
  },
  {
    dialect: 'gemini',
    provider: 'gemini',
    apis: ['generateContent', 'streamGenerateContent'],
    turns: (body) =>
      arrayOf(body.contents)
        .map(objectOf)
        .filter(({ role }) => role === 'model'),
    plain: ({ parts }) =>
      joined(
        arrayOf(parts).map((part) => geminiPart(objectOf(part))),
        (part) => part.text !== undefined && part.thoughtSignature === undefined,
      ),
  },
  ...['openai', 'deepseek'].map((provider): Form => {
    return {
      dialect: 'openai-responses',
      provider,
      apis: ['responses'],
      turns: ({ input }) => itemTurns(arrayOf(input).map(objectOf)),
      plain: ({ items }) =>
        joined(
          arrayOf(items).flatMap((item) => responsesItem(objectOf(item))),
          ({ type }) => type === 'text',
        ),
    }
  }),
]

/** Consecutive items of the model are one turn. */
function itemTurns(items: readonly JsonObject[]): JsonObject[] {
  const turns: JsonObject[][] = []
  let open: JsonObject[] | null = null
  for (const item of items) {
    const type = stringOf(item.type) ?? 'message'
    // One recorded client omits the results of a search for tools.
    if (type === 'tool_search_output') continue
    const own = type === 'message' ? item.role === 'assistant' : !/output|additional/.test(type)
    if (own && open === null) turns.push((open = []))
    if (own) open?.push(item)
    else open = null
  }
  return turns.map((items) => ({ items }))
}

/**
 * The content of an item. Reasoning without encrypted content is only an id, which the provider cannot look
 * up if it stores nothing; DeepSeek shows its reasoning and encrypts none.
 */
function responsesItem(item: JsonObject): JsonObject[] {
  const { type = 'message', id = '', call_id = '', name = '' } = item
  switch (type) {
    case 'message':
      if (typeof item.content === 'string') return [{ type: 'text', text: item.content }]
      return arrayOf(item.content).map((part) => {
        const { text, refusal } = objectOf(part)
        return { type: 'text', text: text ?? refusal ?? '' }
      })
    case 'reasoning': {
      const summary = arrayOf(item.summary).map((part) => stringOf(objectOf(part).text) ?? '')
      const sealed = stringOf(item.encrypted_content) ?? ''
      return sealed === '' ? [] : [{ type, id, summary: summary.join('\n\n'), sealed }]
    }
    case 'function_call': {
      // One recorded client serialises the arguments again.
      const json = objectOf(JSON.parse(stringOf(item.arguments) ?? '{}'))
      return [{ type, id: call_id, name, json }]
    }
    default:
      return [{ type, id }]
  }
}

function without(object: JsonObject, keys: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(object).filter(([key]) => !keys.includes(key)))
}

/**
 * The gateway's ids come from the reply; many clients omit them, and both spellings of a member are valid.
 */
function geminiPart(part: JsonObject): JsonObject {
  const plain = objectOf(camel(part))
  if (isObject(plain.functionCall)) plain.functionCall = without(plain.functionCall, ['id'])
  const signature = stringOf(plain.thoughtSignature)
  if (signature !== undefined) {
    plain.thoughtSignature = signature.replaceAll('-', '+').replaceAll('_', '/')
  }
  return plain
}

function camel(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(camel)
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => {
      const name = key.replace(/_([a-z])/g, (_all, letter: string) => letter.toUpperCase())
      return [name, name === 'args' ? member : camel(member ?? null)]
    }),
  )
}

/** Consecutive texts are joined: a client has one string for them. */
function joined(parts: JsonObject[], isText: (part: JsonObject) => boolean): JsonValue[] {
  const out: JsonObject[] = []
  for (const part of parts) {
    const last = out.at(-1)
    if (last !== undefined && isText(last) && isText(part)) {
      last.text = `${stringOf(last.text) ?? ''}${stringOf(part.text) ?? ''}`
    } else out.push({ ...part })
  }
  return out.filter((part) => !isText(part) || stringOf(part.text)?.trim() !== '')
}

/** The first reply as the client gets it. */
function replied(form: Form, { first }: Pair, asked: ChatRequest): { message: JsonObject; fold: Fold } {
  const upstreamCodec = upstreamCodecOf(form.dialect)
  if (upstreamCodec === null) throw new Error('no codec for upstreams')
  const fold = new Fold()
  const text = first.response_body.trim()
  if (!first.stream && text.startsWith('{'))
    upstreamCodec.decodeReply(objectOf(JSON.parse(text)), asked, fold)
  else {
    const decoder = upstreamCodec.newDecoder(asked, fold)
    if (text.startsWith('[')) {
      for (const chunk of arrayOf(JSON.parse(text))) decoder.frame('', JSON.stringify(chunk))
    } else {
      const framer = new SseFramer(decoder)
      framer.write(Buffer.from(first.response_body))
      framer.end()
    }
    decoder.end()
  }
  const reply = fold.reply()
  if (reply === null) throw new Error(fold.error?.message ?? 'unfinished')
  const body = objectOf(JSON.parse(client.encodeReply(reply, asked, { ...SEED, origin: form.dialect }).text))
  return { message: objectOf(objectOf(arrayOf(body.choices)[0]).message), fold }
}

/** The members of a message that OpenAI's types have. */
function known({ role, content, tool_calls }: JsonObject): JsonObject {
  const calls = arrayOf(tool_calls).map((call) => without(objectOf(call), ['extra_content']))
  const message = { role: role ?? '', content: content ?? null }
  return calls.length === 0 ? message : { ...message, tool_calls: calls }
}

/** The conversation up to the compared turn, and the messages that the turn needs after it. */
function conversation(message: JsonObject): JsonValue[] {
  const results = arrayOf(message.tool_calls).map((call) => {
    return { role: 'tool', tool_call_id: objectOf(call).id ?? '', content: 'r' }
  })
  return [{ role: 'user', content: 'q' }, message, ...results, { role: 'user', content: 'more' }]
}

function rendered(form: Form, asked: ChatRequest): JsonValue {
  const facts = factsFor(NO_MODELS, asked.model)
  const body = upstreamCodecOf(form.dialect)?.encodeRequest(asked, facts, NO_LOSSES) ?? {}
  const [turn = {}] = form.turns(body)
  return form.plain(turn)
}

/** Differences; empty if both forms of the message are rendered as recorded. */
async function compare(form: Form, pair: Pair): Promise<string[]> {
  const model = pair.second.model ?? ''
  const asked = requestOf([{ role: 'user', content: 'q' }], model)
  const { message, fold } = replied(form, pair, asked)
  const [recorded = {}] = form.turns(objectOf(pair.second.request_body))
  const wanted = form.plain(recorded)

  const scope = { accountId: 'a', family: form.dialect, model }
  const escrow = newEscrow()
  const reply = fold.reply()
  if (reply !== null) await escrow.keep(asked, reply, scope)
  const bare = requestOf(conversation(known(message)), model)
  const without = rendered(form, await escrow.restore(bare, scope))
  escrow.close()
  const full = rendered(form, requestOf(conversation(message), model))
  const expressible = wanted.filter((part) => !isOpaque(form, objectOf(part)))
  const bareIs = text(without) === text(wanted)
  const fullIs = text(full) === text(expressibleText(form, expressible))
  return [...(bareIs ? [] : ['without reasoning fields']), ...(fullIs ? [] : ['with reasoning fields'])]
}

/** The turn without the blocks that a chat message lacks; texts may become adjacent. */
function expressibleText({ dialect, plain }: Form, expressible: JsonValue[]): JsonValue[] {
  if (dialect === 'gemini') return plain({ parts: expressible })
  if (dialect === 'anthropic') return plain({ content: expressible })
  return joined(expressible.map(objectOf), ({ type }) => type === 'text')
}

/** Blocks that a chat message lacks. */
function isOpaque({ dialect }: Form, part: JsonObject): boolean {
  switch (dialect) {
    case 'gemini':
      return ['text', 'functionCall'].every((key) => part[key] === undefined)
    case 'anthropic':
    case 'openai-responses':
      return !IN_CHAT.includes(stringOf(part.type) ?? '')
    default:
      return dialect satisfies never
  }
}

/** Blocks that a chat message has, by the formats' names. */
const IN_CHAT = ['text', 'thinking', 'redacted_thinking', 'tool_use', 'reasoning', 'function_call']

function text(value: JsonValue): string {
  return JSON.stringify(sorted(value))
}

/** Members in order. Some recordings were made by a tool that changes typographic marks in requests. */
function sorted(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value === 'string')
    return value.replaceAll(/[’‘]/g, "'").replaceAll(/[“”]/g, '"').replaceAll('–', '-')
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, member]) => [key, sorted(member ?? null)]),
  )
}

function newEscrow(): Escrow {
  const settings = {
    enabled: true,
    key: null,
    ttlSeconds: 3_600,
    maxEntries: 9,
    maxBytes: 1e9,
    memoryBytes: 1e9,
  }
  return new Escrow({
    cache: new FakeSharedCache(),
    settings: () => settings,
    secret: 's',
    now: () => 0,
    onResult: () => undefined,
  })
}

for (const form of FORMS) {
  void t.test(`${form.provider} ${form.dialect}`, skipWithoutFixtures(), async (t) => {
    const streamed = { whole: 0, streamed: 0 }
    for (const pair of pairs(form.provider, form.apis, form.turns)) {
      const different = await compare(form, pair)
      if (pair.name in EXCEPTIONS) t.not(different.length, 0, `${pair.name} is the same now`)
      else t.same(different, [], pair.name)
      streamed[pair.first.stream ? 'streamed' : 'whole'] += 1
    }
    t.comment(`${streamed.whole} whole and ${streamed.streamed} streamed replies`)
    t.ok(streamed.whole >= 1 && streamed.streamed >= 1, 'recordings of both kinds')
  })
}
