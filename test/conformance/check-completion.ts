/**
 * Reads a reply of the gateway and checks it against the format of chat completions. Each fault is one line
 * of text; `recorded.ts` extracts the content.
 */
import { arrayOf, isObject, objectOf, type JsonObject } from '../../src/base/json.js'

const FINISHES = new Set(['stop', 'length', 'tool_calls', 'content_filter', 'function_call'])

/** One HTTP reply, complete or not. */
export interface Answered {
  readonly status: number
  readonly type: string
  readonly text: string
  /** False if the connection closed before the end. */
  readonly whole: boolean
}

/** Reads a response until it ends or breaks. */
export async function collect(response: Response): Promise<Answered> {
  const decoder = new TextDecoder()
  let text = ''
  let whole = true
  try {
    for await (const chunk of response.body ?? []) {
      if (chunk instanceof Uint8Array) text += decoder.decode(chunk, { stream: true })
    }
  } catch {
    whole = false
  }
  const type = response.headers.get('content-type') ?? ''
  return { status: response.status, type, text, whole }
}

/** Faults of a whole chat completion. */
export function faultsOfWhole({ status, type, text, whole }: Answered): string[] {
  if (status !== 200) return [`status ${status}: ${text.slice(0, 300)}`]
  const faults: string[] = []
  const body = objectOf(JSON.parse(text))
  const check = checkInto(faults)
  check(whole, 'the connection broke')
  check(type.startsWith('application/json'), `content-type ${type}`)
  check(body['object'] === 'chat.completion', 'object')
  checkHead(body, check)
  const choices = arrayOf(body['choices']).map(objectOf)
  check(choices.length > 0, 'no choices')
  for (const choice of choices) {
    check(Number.isInteger(choice['index']), 'choice.index')
    const finish = choice['finish_reason']
    check(typeof finish === 'string' && FINISHES.has(finish), `finish_reason ${JSON.stringify(finish)}`)
    checkMessage(objectOf(choice['message']), check)
  }
  checkUsage(body['usage'], check)
  return faults
}

/** Faults of a stream, and its chunks; only of the first choice. */
export function faultsOfStream(answered: Answered): { faults: string[]; chunks: JsonObject[] } {
  const { status, type, text, whole } = answered
  if (status !== 200) return { faults: [`status ${status}: ${text.slice(0, 300)}`], chunks: [] }
  const faults: string[] = []
  const check = checkInto(faults)
  const data = text
    .split(/\r?\n\r?\n/)
    .filter((block) => block !== '')
    .map((block) => block.replace(/^data: ?/, ''))
  check(whole, 'the connection broke')
  check(type.startsWith('text/event-stream'), `content-type ${type}`)
  check(data.at(-1) === '[DONE]', 'no [DONE] at the end')
  check(data.filter((each) => each === '[DONE]').length === 1, 'more than one [DONE]')
  const chunks = data
    .filter((each) => each !== '[DONE]' && !each.startsWith(':'))
    .map((each) => objectOf(JSON.parse(each)))
  for (const name of ['id', 'model', 'created']) {
    const values = new Set(chunks.map((chunk) => chunk[name]))
    check(values.size === 1, `more than one ${name}: ${JSON.stringify([...values])}`)
  }
  for (const chunk of chunks) {
    check(chunk['object'] === 'chat.completion.chunk', 'object')
    checkHead(chunk, check)
  }
  checkOrder(chunks, check)
  return { faults: [...new Set(faults)], chunks }
}

/** Notes a fault if the condition does not hold. */
export type Check = (good: boolean, fault: string) => void

/** A check that adds to the faults. */
export function checkInto(faults: string[]): Check {
  return (good, fault) => {
    if (!good) faults.push(fault)
  }
}

function checkHead(body: JsonObject, check: Check): void {
  const { id, created, model } = body
  check(typeof id === 'string' && id !== '', 'id')
  check(Number.isInteger(created), 'created')
  check(typeof model === 'string' && model !== '', 'model')
}

function checkMessage(message: JsonObject, check: Check): void {
  const { role, content } = message
  check(role === 'assistant', 'message.role')
  check(content === null || typeof content === 'string' || content === undefined, 'content')
  for (const call of arrayOf(message['tool_calls']).map(objectOf)) {
    check(typeof call['id'] === 'string' && call['id'] !== '', 'tool_calls.id')
    const kind = call['type'] === 'custom' ? 'custom' : 'function'
    check(typeof objectOf(call[kind])['name'] === 'string', 'tool_calls.function.name')
  }
}

function checkUsage(usage: unknown, check: Check): void {
  if (!isObject(usage)) {
    check(false, 'no usage')
    return
  }
  for (const name of ['prompt_tokens', 'completion_tokens', 'total_tokens']) {
    check(Number.isInteger(usage[name]), `usage.${name}`)
  }
}

/** Role first, content between, one finish, then at most the usage. */
function checkOrder(chunks: readonly JsonObject[], check: Check): void {
  const choices = chunks.flatMap((chunk) => arrayOf(chunk['choices']).map(objectOf))
  const firstChoices = choices.filter((choice) => (choice['index'] ?? 0) === 0)
  check(objectOf(firstChoices[0]?.['delta'])['role'] === 'assistant', 'the first chunk has no role')
  const ends = firstChoices.filter((choice) => typeof choice['finish_reason'] === 'string')
  check(ends.length === 1, `${ends.length} chunks with a finish_reason`)
  const finish = ends[0]?.['finish_reason']
  check(typeof finish === 'string' && FINISHES.has(finish), `finish_reason ${JSON.stringify(finish)}`)
  const after = firstChoices.slice(
    firstChoices.findIndex((it) => typeof it['finish_reason'] === 'string') + 1,
  )
  check(
    after.every((choice) => Object.keys(objectOf(choice['delta'])).length === 0),
    'content after the finish',
  )
  const known = new Set<number>()
  for (const choice of firstChoices) {
    for (const call of arrayOf(objectOf(choice['delta'])['tool_calls']).map(objectOf)) {
      const { index } = call
      const member = call['function'] ?? call['custom']
      check(isObject(member), "a call's chunk without its member")
      if (typeof index !== 'number') check(false, 'tool_calls without an index')
      else if (!known.has(index)) {
        check(typeof call['id'] === 'string' && call['id'] !== '', 'a call begins without an id')
        known.add(index)
      }
    }
  }
  const last = chunks.at(-1) ?? {}
  check(arrayOf(last['choices']).length === 0, 'the last chunk is not the usage')
  checkUsage(last['usage'], check)
}
