/**
 * Goal: every recorded chat-completions request is accepted for every upstream dialect, or refused with a 400
 * that names the field; accepted ones arrive with all text, tools and calls.
 * Method: sends each for models of OpenAI, Anthropic and Google. The emulator applies the provider's own
 * rules and must accept every request that the gateway accepts. Each day has two of the models, the long
 * suite all.
 */
import t, { type Test } from 'tap'
import { objectOf, stringOf, type JsonObject } from '../../../src/base/json.js'
import { fixtures, skipWithoutFixtures, type Recording, labelOf } from '../../helpers/fixtures.js'
import { IS_LONG, ofToday } from '../../helpers/long-suite.js'
import { startGateway } from '../../helpers/gateway.js'
import { contentOfUpstream, contentOfChat, type RequestContent } from '../requests/request-content.js'
import { Tally } from '../run-in-parallel.js'

const PROVIDERS = ['openai', 'azure', 'groq', 'mistral', 'deepseek', 'openrouter', 'gemini']
/** The newest models have other rules for sampling, thinking and forced tools. */
const MODELS = [
  'gpt-4o',
  'gpt-5-pro',
  'claude-sonnet-4-5',
  'claude-opus-5-5',
  'gemini-2.5-flash',
  'gemini-3.5-flash',
]

const asked = PROVIDERS.flatMap((provider) => fixtures({ provider, api: 'chat.completions' }))
t.setTimeout(120_000)
const gateway = await startGateway(t, { upstreamOptions: 'native_sharing: shared' })
const { emulator } = gateway

/** An expected refusal and its reason. */
interface Exception {
  /** The models that it applies to. */
  readonly models: RegExp
  readonly name: RegExp
  /** The field in the refusal. */
  readonly param: RegExp
  readonly reason: string
}

const ALL = /./
const FOREIGN = /^(?:claude|gemini)-/
/** Served over Responses. */
const RESPONSES = /^gpt-5-pro$/
const TRANSLATED = /^(?:claude|gemini)-|^gpt-5-pro$/

const REFUSED: readonly Exception[] = [
  {
    models: ALL,
    name: /^openai\/ai-gateway__chat-(?:no-messages|bad-request)$/,
    param: /^(?:messages|max_tokens)$/,
    reason: 'invalid on purpose; OpenAI returned 400 as well',
  },
  {
    models: ALL,
    name: /^groq\/.*qwen3-effort-setting/,
    param: /^reasoning_effort$/,
    reason: 'the effort "default" is Groq\'s alone',
  },
  {
    models: ALL,
    name: /^mistral\/.*document-mistral\]\.[23]$/,
    param: /^messages\[4\]\.content\[[01]\]\.type$/,
    reason: "parts of type document_url are Mistral's alone; the format has file parts",
  },
  {
    models: ALL,
    name: /^openrouter\/.*(?:advisor_tool|web_search_\w+)$/,
    param: /^tools\[0\]\.type$/,
    reason: 'tools of type openrouter:… run at OpenRouter',
  },
  {
    models: /^claude-/,
    name: /^openrouter\/.*binary_content_video_public_api$/,
    param: /^messages\[0\]\.content\[1\]$/,
    reason: "Anthropic's models have no video input",
  },
  {
    models: TRANSLATED,
    name: /^openai\//,
    param: /^audio$/,
    reason: "audio replies: only OpenAI's chat format has them",
  },
  {
    models: FOREIGN,
    name: /^openai\//,
    param: /^web_search_options$/,
    reason: 'searching is not on by default on other upstreams',
  },
  {
    models: TRANSLATED,
    name: /^openai\//,
    param: /^n$/,
    reason: 'several choices of one request: only on a route of the same dialect, and Gemini 2.5',
  },
  {
    models: FOREIGN,
    name: /^openai\//,
    param: /^messages\[\d\]$/,
    reason: 'a conversation that does not begin with a user message',
  },
  {
    models: FOREIGN,
    name: /uploaded_file/,
    param: /^messages\[\d\]\.content/,
    reason: 'a file id of one provider means nothing to another',
  },
  {
    models: /^claude-/,
    name: /audio/,
    param: /^messages\[\d\]\.content\[\d\]$/,
    reason: "Anthropic's models have no audio input",
  },
  {
    models: RESPONSES,
    name: /audio/,
    param: /^messages\[\d\]\.content$/,
    reason: "Responses takes no audio; OpenAI's audio models are served over chat completions",
  },
  {
    models: RESPONSES,
    name: /./,
    param: /^stop$/,
    reason: 'Responses has no stop strings, and a reply cannot be cut exactly while it streams',
  },
  {
    models: /^gemini-/,
    name: /url|sees_multiple_images/,
    param: /^messages\[\d\]\.content/,
    reason: 'an http(s) URL: Gemini reads none, and fetching is off by default',
  },
]

/** Fields of other vendors' conversations that OpenAI's models refuse. */
const FOREIGN_MEMBERS = new Set([
  'cache_control',
  'extra_content',
  'reasoning',
  'reasoning_content',
  'reasoning_details',
  'thinking_blocks',
])

/** Sends the recorded request for a model; `sent` is the upstream's request, if any. */
async function send(
  recording: Recording,
  model: string,
): Promise<{ status: number; error: JsonObject; sent: JsonObject | undefined }> {
  const last = emulator.ledger.at(-1)
  const response = await gateway.chat({ ...objectOf(recording.request_body), model })
  const text = await response.text()
  const entry = emulator.ledger.at(-1)
  const error = response.ok ? {} : objectOf(objectOf(JSON.parse(text))['error'])
  return { status: response.status, error, sent: entry === last ? undefined : entry?.body }
}

/** The tools that a model must get: the client's, with three rules of the providers. */
function toolsFor(model: string, body: JsonObject, { tools, calls }: RequestContent): readonly string[] {
  // The newest Claude cannot be forced to call a tool; it gets only the named one.
  const forced = stringOf(objectOf(objectOf(body['tool_choice'])['function'])['name'])
  if (model === 'claude-opus-5-5' && forced !== undefined) return [forced]
  // Anthropic requires a declaration of the tools of every call in the history.
  if (model.startsWith('claude-') && tools.length === 0) return [...new Set(calls)]
  // Gemini 2.5 accepts no reply schema beside tools: a tool carries the reply.
  const schema = objectOf(body['response_format'])['type'] === 'json_schema'
  const carrier = model.startsWith('gemini-2.5') && schema && tools.length > 0
  return carrier ? [...tools, 'json_response'] : tools
}

const used = new Set<Exception>()

/** The exception of a refusal. */
function exceptionFor(label: string, model: string, error: JsonObject): Exception | undefined {
  const param = stringOf(error['param']) ?? ''
  const found = REFUSED.find((it) => it.models.test(model) && it.name.test(label) && it.param.test(param))
  if (found !== undefined) used.add(found)
  return found
}

/**
 * The members that `gpt-4o` must get: the client's, without nulls, without members of other vendors, and
 * without an effort, since it does not reason. Ids are compared by their prefixes, because OpenAI limits
 * their length.
 */
function takenBy4o(body: JsonObject): JsonObject {
  const own = JSON.stringify(body, (key, value: unknown) => {
    // OpenRouter's `provider.order`: the gateway chooses the provider (decision 0061).
    if (FOREIGN_MEMBERS.has(key) || key === 'order') return undefined
    return /^(?:tool_call_)?id$/.test(key) && typeof value === 'string' ? value.slice(0, 31) : value
  })
  const members = Object.entries(objectOf(JSON.parse(own))).filter(
    ([key, value]) => value !== null && key !== 'reasoning_effort',
  )
  return { ...Object.fromEntries(members), model: 'gpt-4o', stream_options: 0 }
}

/** Compares the upstream's request with the client's. */
function compare(
  t: Test,
  label: string,
  { model, requested, sent }: { model: string; requested: JsonObject; sent: JsonObject },
): void {
  if (model === 'gpt-4o') {
    // A free choice among no tools is not sent: every vendor refuses it or has no use for it.
    const { tool_choice: choice, ...others } = requested
    const isFree = choice === 'auto' || choice === 'none'
    const expected = isFree && requested['tools'] === undefined ? others : requested
    t.same(takenBy4o(sent), takenBy4o(expected), label)
    const foreign = [...FOREIGN_MEMBERS].filter((key) => key in sent)
    t.same([sent['reasoning_effort'], ...foreign], [undefined], `${label}: nothing foreign`)
    return
  }
  const want = contentOfChat(requested)
  const received = contentOfUpstream(sent)
  const all = received.words.join('\n')
  const lost = want.words.filter((word) => !all.includes(word))
  t.same(lost, [], `${label}: all words arrive`)
  t.same(received.tools, toolsFor(model, requested, want), `${label}: all tools arrive`)
  t.same(received.calls, want.calls, `${label}: all calls arrive`)
}

for (const model of ofToday(MODELS, 6)) {
  void t.test(`recorded requests for ${model}`, skipWithoutFixtures(), async (t) => {
    const tally = new Tally()
    for (const recording of asked) {
      const label = labelOf(recording)
      const { status, error, sent } = await send(recording, model)
      if (sent !== undefined) {
        compare(t, label, { model, requested: objectOf(recording.request_body), sent })
      }
      if (status === 200) {
        tally.add(`${recording.provider} taken`)
        continue
      }
      t.equal(sent, undefined, `${label}: no provider refuses what the gateway took`)
      const exception = exceptionFor(label, model, error)
      t.equal(status, 400, label)
      t.ok(exception, `${label}: ${JSON.stringify(error)}`)
      t.ok(stringOf(error['message'])?.includes(stringOf(error['param']) ?? '?'), label)
      tally.add(`${recording.provider} refused`)
      tally.add(`(${exception?.reason ?? '?'})`)
    }
    t.comment(tally.toString())
  })
}

// Each day has some of the models.
if (IS_LONG)
  void t.test('every exception occurs', skipWithoutFixtures(), (t) => {
    const idle = REFUSED.filter((it) => !used.has(it))
    t.same(
      idle.map(({ reason }) => reason),
      [],
    )
    t.end()
  })
