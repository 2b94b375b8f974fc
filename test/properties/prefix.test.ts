/**
 * Goal: for every upstream, the request of a growing conversation begins with the previous request unchanged;
 * signed thinking and prompt caches depend on it.
 * Method: conversations and replies with seeded randomness; each request must begin with the previous one.
 * With the escrow the client sends different members of its messages in each request; without it, always the
 * same ones.
 */
import t from 'tap'
import type { ReplyBlock } from '../../src/formats/chat/fold.js'
import { arrayOf, type JsonObject, type JsonValue, objectOf } from '../../src/base/json.js'
import type { ModelFacts } from '../../src/formats/chat/model-facts.js'
import type { ChatRequest } from '../../src/formats/chat/request.js'
import type { DialectName } from '../../src/formats/dialect.js'
import { Escrow } from '../../src/gateway/reasoning/escrow.js'
import { FakeSharedCache } from '../gateway/reasoning/fake-shared-cache.js'
import { ofToday } from '../helpers/long-suite.js'
import { client, seededRoll, SEED, upstream } from './transcript-streams.js'

type Roll = (n: number) => number

const ROUNDS = 150
const seeds = [...ofToday(Array.from({ length: ROUNDS }, (_, at) => at + 1))]
const NO_LOSSES = { drop: (): void => undefined }
const TEXTS = ['Hello', ' ', 'Ünïcode 🔑', '{"a":1}', 'yes', 'Done.', 'Done.']
const TOOLS = ['look', 'lookup', 'get_time'].map((name) => {
  return { type: 'function', function: { name, parameters: { type: 'object', properties: {} } } }
})

/** Model facts for which the formats encode differently. */
const FACTS: Readonly<Record<string, readonly Partial<ModelFacts>[]>> = {
  'openai-chat': [{ family: 'openai' }],
  'openai-responses': [{ family: 'openai' }, { family: 'openai', systemRole: 'developer' }],
  anthropic: [{ family: 'anthropic' }, { family: 'anthropic', midConversationSystem: false }],
  gemini: [{ family: 'google' }, { family: 'google', thinkingBudget: { min: 0, max: 9, canDisable: true } }],
  converse: [{ family: 'amazon' }, { family: 'anthropic', midConversationSystem: true }],
}

/** The parts of a request that may only be appended to, one entry each. */
function sent(dialect: DialectName, body: JsonObject): { fixed: string; turns: string[] } {
  const flat = (turns: JsonValue | undefined, member: string): string[] =>
    arrayOf(turns)
      .map(objectOf)
      .flatMap((turn) => arrayOf(turn[member]).map((part) => JSON.stringify([turn.role, part])))
  const items = (value: JsonValue | undefined): string[] => arrayOf(value).map((item) => JSON.stringify(item))
  const fixed = JSON.stringify([body.system, body.systemInstruction, body.instructions, body.tools])
  switch (dialect) {
    case 'anthropic':
    case 'converse':
      return { fixed, turns: flat(body.messages, 'content') }
    case 'gemini':
      return { fixed, turns: flat(body.contents, 'parts') }
    case 'openai-responses':
      return { fixed, turns: items(body.input) }
    case 'openai-chat':
      return { fixed, turns: items(body.messages) }
    default:
      return dialect satisfies never
  }
}

/** A possible reply of this upstream; calls come last. */
function answer(dialect: DialectName, roll: Roll, turn: number): ReplyBlock[] {
  const blocks: ReplyBlock[] = []
  const state = (): string => `s${turn}_${roll(1_000_000)}`
  for (let count = roll(4); count >= 0; count -= 1) {
    const text = TEXTS[roll(TEXTS.length)] ?? ''
    const kind = roll(6)
    if (kind > 2) blocks.push({ type: 'text', text, citations: [] })
    else if (dialect === 'openai-chat') blocks.push({ type: 'thinking', text })
    else if (kind === 0 && dialect === 'gemini') {
      blocks.push({
        type: 'text',
        text: roll(2) === 0 ? '' : text,
        citations: [],
        signature: state(),
      })
    } else if (kind === 0 && dialect === 'anthropic') {
      blocks.push({ type: 'thinking', text: '', redacted: state() })
    } else if (kind === 1 && dialect !== 'openai-responses') {
      const block = dialect === 'gemini' ? { executableCode: { code: text } } : { type: 'x_tool_result' }
      blocks.push({ type: 'opaque', provider: dialect, block })
    } else blocks.push({ type: 'thinking', text, signature: state() })
  }
  for (let count = roll(3); count > 0; count -= 1) {
    const call = {
      type: 'tool',
      id: `call_${turn}_${count}`,
      name: 'lookup',
      json: '{"q":1}',
    } as const
    blocks.push(dialect === 'gemini' && roll(2) === 0 ? { ...call, signature: state() } : call)
  }
  const writes = blocks.some(
    (block) => block.type === 'tool' || (block.type === 'text' && block.text.trim() !== ''),
  )
  return writes ? blocks : [...blocks, { type: 'text', text: `answer ${turn}`, citations: [] }]
}

/** The members of a message that different clients send back. */
const CLIENTS: readonly ((message: JsonObject) => JsonObject)[] = [
  (message) => message,
  ({ role, content, tool_calls }) => {
    const calls = arrayOf(tool_calls).map((call) => {
      const { id, type, function: inner } = objectOf(call)
      return { id: id ?? '', type: type ?? '', function: inner ?? {} }
    })
    const bare = { role: role ?? '', content: content ?? null }
    return calls.length === 0 ? bare : { ...bare, tool_calls: calls }
  },
  (message) => without(message, ['reasoning_details']),
  (message) => without(message, ['reasoning_content', 'extra_content']),
]

function without(message: JsonObject, keys: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(message).filter(([key]) => !keys.includes(key)))
}

/** A message of the history: a fixed message, or a reply that clients send back in different forms. */
type Entry = { fixed: JsonObject } | { answer: JsonObject }

function requestOf(history: readonly Entry[], keeps: () => (message: JsonObject) => JsonObject): ChatRequest {
  const messages = history.map((entry) => ('fixed' in entry ? entry.fixed : keeps()(entry.answer)))
  return client.decodeRequest({ model: 'm', messages, tools: TOOLS }, { operation: 'chat' })
}

function newEscrow(): Escrow {
  const settings = {
    enabled: true,
    key: null,
    ttlSeconds: 3_600,
    maxEntries: 1e9,
    maxBytes: 1e9,
    memoryBytes: 1e9,
  }
  const options = { settings: () => settings, secret: 's', now: () => 0, onResult: () => undefined }
  return new Escrow({ ...options, cache: new FakeSharedCache() })
}

/** The next message of a user or tool, sometimes an instruction. */
function question(roll: Roll, message: JsonObject | null): Entry[] {
  const calls = arrayOf(message?.tool_calls).map(objectOf)
  const entries: Entry[] = calls.map(({ id }) => {
    return {
      fixed: { role: 'tool', tool_call_id: id ?? '', content: TEXTS[roll(TEXTS.length)] ?? '' },
    }
  })
  if (roll(6) === 0) entries.push({ fixed: { role: 'system', content: `Rule ${roll(9)}.` } })
  if (calls.length === 0 || roll(3) === 0) {
    entries.push({ fixed: { role: 'user', content: `Q${roll(99)}` } })
    if (roll(5) === 0) entries.push({ fixed: { role: 'user', content: 'And more.' } })
  }
  return entries
}

/** The first request that does not begin with the previous one; null if all do. */
async function breach(
  dialect: DialectName,
  facts: ModelFacts,
  { seed, escrow }: { seed: number; escrow: Escrow | null },
): Promise<string | null> {
  const roll = seededRoll(seed)
  const origin = upstream(dialect).stateOrigin ?? dialect
  const scope = { accountId: 'a', family: origin, model: `m${seed}` }
  const constant = CLIENTS[roll(CLIENTS.length)] ?? CLIENTS[0]
  const keeps = (): ((message: JsonObject) => JsonObject) =>
    (escrow === null ? constant : CLIENTS[roll(CLIENTS.length)]) ?? ((message) => message)
  const history: Entry[] = [
    { fixed: { role: 'system', content: 'Be brief.' } },
    { fixed: { role: 'user', content: 'Hi' } },
  ]
  let before: { fixed: string; turns: string[] } | null = null
  for (let turn = 0; turn < 6; turn += 1) {
    const asked = requestOf(history, keeps)
    const restored = escrow === null ? asked : await escrow.restore(asked, scope)
    const now = sent(dialect, upstream(dialect).encodeRequest(restored, facts, NO_LOSSES))
    const again = sent(dialect, upstream(dialect).encodeRequest(restored, facts, NO_LOSSES))
    if (JSON.stringify(again) !== JSON.stringify(now)) return `turn ${turn}: two renderings of one request`
    if (before !== null) {
      const { turns } = before
      if (now.fixed !== before.fixed) return `turn ${turn}: the beginning has changed`
      const position = turns.findIndex((item, index) => item !== now.turns[index])
      if (position >= 0)
        return `turn ${turn}: ${turns[position] ?? ''} became ${now.turns[position] ?? 'nothing'}`
      if (now.turns.length <= turns.length) return `turn ${turn}: nothing was appended`
    }
    before = now
    const blocks = answer(dialect, roll, turn)
    const reply = { id: 'r', model: 'm', blocks, usage: {}, reason: 'stop', raw: null } as const
    await escrow?.keep(asked, { ...reply, blocks }, scope)
    const body = objectOf(
      JSON.parse(client.encodeReply({ ...reply, blocks }, asked, { ...SEED, origin }).text),
    )
    const message = objectOf(objectOf(arrayOf(body.choices)[0]).message)
    history.push({ answer: message }, ...question(roll, message))
  }
  return null
}

for (const [name, variants] of Object.entries(FACTS)) {
  const dialect = name as DialectName
  // If client and upstream use the same dialect, the client's own bytes pass, with the members that it kept.
  for (const kept of dialect === 'openai-chat' ? [false] : [true, false]) {
    void t.test(`${dialect}, ${kept ? 'with' : 'without'} the escrow`, async (t) => {
      let rendered = 0
      for (const variant of variants) {
        const facts: ModelFacts = { id: 'm', family: 'openai', createdAtSeconds: 0, ...variant }
        for (const seed of seeds) {
          const escrow = kept ? newEscrow() : null
          const found = await breach(dialect, facts, { seed, escrow })
          escrow?.close()
          rendered += 1
          if (found !== null) {
            t.fail(`seed ${seed}: ${found}`)
            break
          }
        }
      }
      t.equal(rendered, seeds.length * variants.length, 'conversations of six turns')
    })
  }
}
