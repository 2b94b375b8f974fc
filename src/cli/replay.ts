/** `sluice replay`: sends a recorded request to an upstream again and compares the replies. */
import { factsFor } from '../config/catalogue.js'
import { isObject, objectOf, stringOf, type JsonObject } from '../base/json.js'
import type { ChatRequest } from '../formats/chat/request.js'
import { decodeReply, encodeRequest } from '../formats/codecs.js'
import type { Reply } from '../formats/chat/fold.js'
import type { Recording } from '../policy/encrypted-recordings.js'
import { dollars } from '../limits/limit-refusal.js'
import { configOption, declare } from './command.js'
import { table } from './print-table-or-json.js'
import { openRehearsalGateway } from './rehearse/rehearsal-gateway.js'
import { missing, readRecording, withRecordings } from './recordings.js'
import { configInForce } from './with-store.js'

const DIALECT = 'openai-chat'

/** `sluice replay`. */
export function command() {
  return declare({
    name: 'replay',
    summary: 'send a recorded request to an upstream again',
    description: `
Sends the recorded request ID to the upstream U, which costs what the request costs, and prints both replies.
Nothing is sent to a running gateway.`,
    exitStatus: '0 success, 1 failure or no such recording, 2 wrong usage.',
    example:
      'sluice replay 0192f5c8a1b27e3f --config config/gateway.yaml --upstream anthropic --model claude-haiku-5-5',
  })
    .argument('<ID>')
    .requiredOption('--upstream <U>', "a name under 'upstreams'")
    .option(
      '--model <M>',
      'the model to request (default: the one that was requested from the recorded upstream)',
    )
    .option('--json', 'print JSON')
    .addOption(configOption())
    .action(async (id, options) => {
      process.exitCode = await replay(id, options)
    })
}

interface ReplayOptions {
  readonly config: string
  readonly upstream: string
  readonly model?: string | undefined
  readonly json?: true | undefined
}

function replay(id: string, { config, upstream, model, json }: ReplayOptions): Promise<number> {
  return withRecordings(config, async (opened) => {
    const { terminal } = opened.session
    const found = await readRecording(opened, id)
    if (found === null) return missing(opened, id)
    const { recording } = found
    const original = originalOf(recording)
    const name = model ?? recording.facts.requested_model ?? recording.facts.model
    const side = await replayed(recording, { config, upstream, model: name })
    if (side === null) {
      terminal.err(`sluice: '${upstream}' is not an upstream of this file`)
      return 1
    }
    const comparison = { id, original, replay: side, same_text: original.text === side.text }
    terminal.out(json ? JSON.stringify(comparison) : sideBySide(original, side))
    return 0
  })
}

/** One side of the comparison. */
interface Side {
  readonly upstream: string | null
  readonly model: string | null
  readonly status: number
  readonly text: string
  readonly tools: readonly { readonly name: string; readonly arguments: string }[]
  readonly input_tokens: number | null
  readonly output_tokens: number | null
  readonly cost_nano_usd: number | null
  readonly duration_ms: number
}

function originalOf({ facts, reply }: Recording): Side {
  const { upstream, upstream_model: model, status, input_tokens, output_tokens } = facts
  const { cost_nano_usd, duration_ms } = facts
  const content = contentOf(reply)
  return {
    upstream,
    model,
    status,
    ...content,
    input_tokens,
    output_tokens,
    cost_nano_usd,
    duration_ms,
  }
}

/** The text and the calls of a canonical reply. */
function contentOf(reply: JsonObject | Reply | null): Pick<Side, 'text' | 'tools'> {
  const blocks: readonly unknown[] = reply !== null && Array.isArray(reply.blocks) ? reply.blocks : []
  let text = ''
  const tools: { name: string; arguments: string }[] = []
  for (const block of blocks) {
    if (!isObject(block)) continue
    if (block['type'] === 'text') text += stringOf(block['text']) ?? ''
    if (block['type'] === 'tool') {
      const [name, json] = [block['name'], block['json']]
      tools.push({ name: stringOf(name) ?? '', arguments: stringOf(json) ?? '' })
    }
  }
  return { text, tools }
}

interface ReplayTarget {
  readonly config: string
  readonly upstream: string
  readonly model: string
}

/** Sends the request through a gateway of this process; null if there is no such upstream. */
async function replayed(
  recording: Recording,
  { config: path, upstream: name, model }: ReplayTarget,
): Promise<Side | null> {
  const inForce = await configInForce(path, () => undefined)
  const upstream = inForce?.config.upstreams[name]
  if (inForce === null || upstream === undefined) return null
  const { config, catalogue } = inForce
  const gateway = await openRehearsalGateway({ config, catalogue, upstream, model })
  try {
    // Written by the gateway from a canonical request.
    const stored = recording.request as unknown as ChatRequest
    const request = { ...stored, model, stream: false, includeUsage: false }
    const facts = { ...factsFor(catalogue, model), family: 'openai', id: model }
    const { body } = encodeRequest({ from: DIALECT, to: DIALECT, request, model: facts })
    const beganMs = performance.now()
    const response = await fetch(`${gateway.origin}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.secret}`, 'content-type': 'application/json' },
      body,
    })
    const json: unknown = await response.json()
    const durationMs = performance.now() - beganMs
    const entry = await gateway.entry(response.headers.get('x-request-id') ?? '')
    const reply = response.status === 200 ? decodeReply(DIALECT, objectOf(json), request) : null
    return {
      upstream: name,
      model: entry?.modelAnswered ?? model,
      status: response.status,
      ...contentOf(reply),
      input_tokens: entry?.usage.input ?? null,
      output_tokens: entry?.usage.output ?? null,
      cost_nano_usd: entry?.costNanoUsd ?? null,
      duration_ms: Math.round(durationMs * 1000) / 1000,
    }
  } finally {
    await gateway.close()
  }
}

function sideBySide(original: Side, replay: Side): string {
  const rows = [
    ['', 'ORIGINAL', 'REPLAY'],
    ...Object.entries(SHOWN).map(([title, shown]) => [title, shown(original), shown(replay)]),
  ]
  const content = ({ text, tools }: Side): string => [text, ...tools.map(callText)].join('\n')
  return [table(rows), '', '--- original', content(original), '', '--- replay', content(replay)].join('\n')
}

/** The rows of the comparison, with their units. */
const SHOWN: Readonly<Record<string, (side: Side) => string>> = {
  upstream: ({ upstream }) => upstream ?? 'none',
  model: ({ model }) => model ?? 'unknown',
  status: ({ status }) => String(status),
  'input tokens': ({ input_tokens: count }) => String(count ?? 'unknown'),
  'output tokens': ({ output_tokens: count }) => String(count ?? 'unknown'),
  cost: ({ cost_nano_usd: cost }) => (cost === null ? 'unknown' : `$${dollars(cost)}`),
  duration: ({ duration_ms: ms }) => `${Math.round(ms)} ms`,
}

function callText({ name, arguments: text }: Side['tools'][number]): string {
  return `${name}(${text})`
}
