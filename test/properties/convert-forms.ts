/**
 * Converts between the two forms of a reply by the simplest reading of each format: splits a whole body into
 * the fragments of a stream with seeded randomness, and joins fragments to a whole body. Shares no code with
 * the dialects.
 */
import { arrayOf, isObject, objectOf, stringOf, type JsonObject } from '../../src/base/json.js'

/** The wire formats that have both forms. */
export type Form = 'openai' | 'anthropic' | 'gemini'

/** A whole body as the data of a stream's frames, in order. */
export function streamDataOf(form: Form, body: JsonObject, roll: (n: number) => number): JsonObject[] {
  if (form === 'openai') return chunksOf(body, roll)
  return form === 'anthropic' ? eventsOf(body, roll) : responsesOf(body, roll)
}

/** The data of a stream's frames as one whole body. */
export function wholeOf(form: Form, fragments: readonly JsonObject[]): JsonObject {
  if (form === 'openai') return completionOf(fragments)
  return form === 'anthropic' ? messageOf(fragments) : responseOf(fragments)
}

/** A text in one to four fragments, none of them empty. */
function cut(text: string, roll: (n: number) => number): string[] {
  const fragments: string[] = []
  let rest = text
  while (rest !== '') {
    const take = fragments.length === 3 ? rest.length : 1 + roll(rest.length)
    fragments.push(rest.slice(0, take))
    rest = rest.slice(take)
  }
  return fragments
}

function chunksOf(body: JsonObject, roll: (n: number) => number): JsonObject[] {
  const choice = objectOf(arrayOf(body['choices'])[0])
  const message = objectOf(choice['message'])
  const deltas: JsonObject[] = [{ role: 'assistant', content: '' }]
  const words = (name: string): void => {
    for (const fragment of cut(stringOf(message[name]) ?? '', roll)) deltas.push({ [name]: fragment })
  }
  words(message['reasoning_content'] === undefined ? 'reasoning' : 'reasoning_content')
  if (Array.isArray(message['content'])) {
    for (const part of message['content']) deltas.push({ content: [part] })
  } else words('content')
  for (const name of ['annotations', 'images']) {
    for (const item of arrayOf(message[name])) deltas.push({ [name]: [item] })
  }
  words('refusal')
  for (const [index, value] of arrayOf(message['tool_calls']).entries()) {
    const call = objectOf(value)
    const kind = isObject(call['custom']) ? 'custom' : 'function'
    const text = kind === 'custom' ? 'input' : 'arguments'
    const inner = objectOf(call[kind])
    const json = stringOf(inner[text]) ?? ''
    deltas.push({ tool_calls: [{ ...call, index, [kind]: { ...inner, [text]: '' } }] })
    for (const fragment of cut(json, roll)) {
      deltas.push({ tool_calls: [{ index, [kind]: { [text]: fragment } }] })
    }
  }
  const legacy = message['function_call']
  if (isObject(legacy)) deltas.push({ function_call: legacy })
  const { usage, ...head } = body
  const chunk = (choices: JsonObject[]): JsonObject => ({ ...head, choices })
  const finish_reason = choice['finish_reason'] ?? null
  return [
    ...deltas.map((delta) => chunk([{ index: 0, delta, finish_reason: null }])),
    chunk([{ index: 0, delta: {}, finish_reason }]),
    { ...chunk([]), ...(usage === undefined ? {} : { usage }) },
  ]
}

/** Joins chunks as client libraries do: texts are concatenated, calls are joined by index. */
function completionOf(fragments: readonly JsonObject[]): JsonObject {
  const message: JsonObject = { role: 'assistant', content: '' }
  const calls: JsonObject[] = []
  const whole: JsonObject = {}
  let finish_reason: JsonObject['x'] = null
  for (const fragment of fragments) {
    for (const name of ['id', 'model', 'service_tier', 'usage', 'x_groq', 'error']) {
      const value = fragment[name]
      const isFirst = !['id', 'model', 'service_tier'].includes(name) || whole[name] === undefined
      if (isFirst && value !== undefined && value !== null && value !== '') whole[name] = value
    }
    const choice = arrayOf(fragment['choices'])
      .map(objectOf)
      .find(({ index }) => (index ?? 0) === 0)
    finish_reason = choice?.['finish_reason'] ?? finish_reason
    const delta = objectOf(choice?.['delta'])
    for (const name of ['content', 'refusal', 'reasoning', 'reasoning_content']) {
      const text = stringOf(delta[name])
      if (text !== undefined) message[name] = (stringOf(message[name]) ?? '') + text
    }
    for (const name of ['annotations', 'images']) {
      if (Array.isArray(delta[name])) {
        message[name] = [...arrayOf(message[name]), ...arrayOf(delta[name])]
      }
    }
    if (Array.isArray(delta['content'])) {
      const before = Array.isArray(message['content']) ? message['content'] : []
      message['content'] = [...before, ...delta['content']]
    }
    for (const value of arrayOf(delta['tool_calls'])) addCall(calls, objectOf(value))
  }
  if (calls.length > 0) message['tool_calls'] = calls
  return { ...whole, choices: [{ index: 0, message, finish_reason }] }
}

function addCall(calls: JsonObject[], fragment: JsonObject): void {
  const { index, ...rest } = fragment
  const at = typeof index === 'number' ? index : 0
  const known = calls[at]
  if (known === undefined) {
    calls[at] = rest
    return
  }
  for (const kind of ['function', 'custom']) {
    const inner = rest[kind]
    if (!isObject(inner)) continue
    const text = kind === 'custom' ? 'input' : 'arguments'
    const before = objectOf(known[kind])
    known[kind] = {
      ...before,
      [text]: (stringOf(before[text]) ?? '') + (stringOf(inner[text]) ?? ''),
    }
  }
}

function eventsOf(message: JsonObject, roll: (n: number) => number): JsonObject[] {
  const { content, stop_reason, stop_sequence, stop_details, usage, ...head } = message
  const events: JsonObject[] = [{ type: 'message_start', message: { ...head, content: [], usage } }]
  for (const [index, value] of arrayOf(content).entries()) {
    const { start, deltas } = blockOf(objectOf(value), roll)
    events.push({ type: 'content_block_start', index, content_block: start })
    if (roll(3) === 0) events.push({ type: 'ping' })
    for (const delta of deltas) events.push({ type: 'content_block_delta', index, delta })
    events.push({ type: 'content_block_stop', index })
  }
  const delta = { stop_reason, stop_sequence, stop_details }
  events.push({ type: 'message_delta', delta, usage }, { type: 'message_stop' })
  return events
}

function blockOf(
  block: JsonObject,
  roll: (n: number) => number,
): { start: JsonObject; deltas: JsonObject[] } {
  switch (block['type']) {
    case 'text': {
      const cites = arrayOf(block['citations']).map((citation) => {
        return { type: 'citations_delta', citation }
      })
      const texts = cut(stringOf(block['text']) ?? '', roll).map((text) => {
        return { type: 'text_delta', text }
      })
      return { start: { type: 'text', text: '' }, deltas: [...cites, ...texts] }
    }
    case 'thinking': {
      const texts = cut(stringOf(block['thinking']) ?? '', roll).map((thinking) => {
        return { type: 'thinking_delta', thinking }
      })
      const signature = { type: 'signature_delta', signature: block['signature'] ?? '' }
      return { start: { type: 'thinking', thinking: '' }, deltas: [...texts, signature] }
    }
    case 'tool_use':
    case 'server_tool_use':
    case 'mcp_tool_use': {
      const json = JSON.stringify(block['input'] ?? {})
      const texts = json === '{}' ? [''] : cut(json, roll)
      const deltas = texts.map((partial_json) => ({ type: 'input_json_delta', partial_json }))
      return { start: { ...block, input: {} }, deltas }
    }
    default:
      return { start: block, deltas: [] }
  }
}

function messageOf(events: readonly JsonObject[]): JsonObject {
  let message: JsonObject = {}
  const blocks: JsonObject[] = []
  const json: string[] = []
  const usage: JsonObject = {}
  for (const event of events) {
    const at = typeof event['index'] === 'number' ? event['index'] : 0
    const delta = objectOf(event['delta'])
    if (event['type'] === 'message_start') message = { ...objectOf(event['message']) }
    if (event['type'] === 'message_delta') message = { ...message, ...delta }
    if (event['type'] === 'content_block_start') blocks[at] = { ...objectOf(event['content_block']) }
    const block = blocks[at] ?? {}
    if (event['type'] === 'content_block_delta') {
      for (const name of ['text', 'thinking', 'signature']) {
        const fragment = stringOf(delta[name])
        if (fragment !== undefined) block[name] = (stringOf(block[name]) ?? '') + fragment
      }
      if (delta['type'] === 'citations_delta') {
        block['citations'] = [...arrayOf(block['citations']), delta['citation'] ?? null]
      }
      if (delta['type'] === 'compaction_delta') block['content'] = delta['content']
      json[at] = (json[at] ?? '') + (stringOf(delta['partial_json']) ?? '')
    }
    const counts = objectOf(objectOf(event['message'])['usage'] ?? event['usage'])
    for (const [name, value] of Object.entries(counts)) {
      // A zero does not replace a count.
      if (value !== null && (value !== 0 || usage[name] === undefined)) usage[name] = value
    }
  }
  const content = blocks.map((block, index) => {
    const typed = json[index] ?? ''
    return typed === '' ? block : { ...block, input: objectOf(JSON.parse(typed)) }
  })
  return { ...message, content, usage }
}

function responsesOf(body: JsonObject, roll: (n: number) => number): JsonObject[] {
  const [first, ...others] = arrayOf(body['candidates']).map(objectOf)
  if (first === undefined) return [body]
  const { content, ...end } = first
  const { promptFeedback, ...head } = body
  delete head['candidates']
  const parts = arrayOf(objectOf(content)['parts']).map(objectOf)
  const groups: JsonObject[][] = []
  for (const fragment of parts.flatMap((part) => cutPart(part, roll))) {
    const last = groups.at(-1)
    if (last === undefined || roll(2) === 0) groups.push([fragment])
    else last.push(fragment)
  }
  const response = (content: JsonObject[], more: JsonObject): JsonObject => {
    const { index } = first
    const candidate = { content: { role: 'model', parts: content }, ...more }
    return { ...head, candidates: [index === undefined ? candidate : { ...candidate, index }] }
  }
  const last = response([{ text: '' }], end)
  return [
    ...groups.map((group) => response(group, {})),
    {
      ...last,
      candidates: [...arrayOf(last['candidates']), ...others],
      ...(promptFeedback === undefined ? {} : { promptFeedback }),
    },
  ]
}

/** A signature stays with the last fragment of its part. */
function cutPart(part: JsonObject, roll: (n: number) => number): JsonObject[] {
  const { text, thoughtSignature, ...rest } = part
  if (typeof text !== 'string' || text === '') return [part]
  const fragments = cut(text, roll).map((fragment) => ({ ...rest, text: fragment }))
  if (thoughtSignature === undefined) return fragments
  return fragments.map((fragment, index) =>
    index === fragments.length - 1 ? { ...fragment, thoughtSignature } : fragment,
  )
}

/** Members of a later chunk replace those of earlier ones, for candidates and counts. */
function responseOf(fragments: readonly JsonObject[]): JsonObject {
  let whole: JsonObject = {}
  let candidate: JsonObject = {}
  const parts: JsonObject[] = []
  const usageMetadata: JsonObject = {}
  for (const fragment of fragments) {
    whole = { ...whole, ...fragment, responseId: whole['responseId'] ?? fragment['responseId'] }
    Object.assign(usageMetadata, objectOf(fragment['usageMetadata']))
    const found = arrayOf(fragment['candidates'])
      .map(objectOf)
      .find(({ index }) => (index ?? 0) === 0)
    if (found === undefined) continue
    candidate = { ...candidate, ...found }
    for (const part of arrayOf(objectOf(found['content'])['parts'])) parts.push(objectOf(part))
  }
  const answered = Object.keys(candidate).length > 0
  const candidates = answered ? [{ ...candidate, content: { role: 'model', parts } }] : []
  const counted = Object.keys(usageMetadata).length === 0 ? {} : { usageMetadata }
  return { ...whole, candidates, ...counted }
}
