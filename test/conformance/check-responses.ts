/**
 * Checks the events of a Responses stream, for the tests of its clients.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { arrayOf, objectOf, stringOf, type JsonObject } from '../../src/base/json.js'
import type { TestGateway } from '../helpers/gateway.js'

/**
 * Makes the gateway use chat completions for its first upstream. Otherwise it would forward a Responses
 * client's bytes to the endpoint of the same format.
 */
export function overChat(gateway: TestGateway): void {
  const { configFile } = gateway
  const text = readFileSync(configFile, 'utf8')
  writeFileSync(configFile, text.replace('openai: { dialect: openai,', 'openai: { dialect: openai-chat,'))
  gateway.reload()
}

/** Faults of the events of a streamed response by the format's rules; empty if there are none. */
export function faultsOfEvents(events: readonly JsonObject[]): string[] {
  const faults: string[] = []
  const check = (isRight: boolean, fault: string): void => {
    if (!isRight) faults.push(fault)
  }
  const items: ItemSeen[] = []
  const names = events.map(({ type }) => stringOf(type) ?? '')
  check(names[0] === 'response.created' && names[1] === 'response.in_progress', 'how it begins')
  const ends = names.filter((name) => /^response\.(?:completed|incomplete|failed)$/.test(name))
  check(ends.length === 1 && ends[0] === names.at(-1), `how it ends: ${ends.join()}`)
  for (const [at, event] of events.entries()) {
    check(event['sequence_number'] === at, `number ${JSON.stringify(event['sequence_number'])} at ${at}`)
    const item = objectOf(event['item'])
    const name = names[at] ?? ''
    if (name === 'response.output_item.added') {
      check(event['output_index'] === items.length, 'the index of a new item')
      check(
        items.every(({ done }) => done !== null),
        'an item before the last one ended',
      )
      items.push({ id: item['id'], type: item['type'], texts: new Map(), done: null })
      continue
    }
    const place = event['output_index']
    const open = typeof place === 'number' ? items[place] : undefined
    if (typeof place === 'number') check(open !== undefined, `${name} of no item`)
    if (open === undefined) continue
    if (name === 'response.output_item.done') {
      check(open.id === item['id'] && open.type === item['type'], 'an item ends as another')
      open.done = item
    } else {
      check(open.done === null || name.endsWith('annotation.added'), `${name} too late`)
      check(event['item_id'] === open.id, `${name} names another item`)
      if (name.endsWith('annotation.added')) cite(open, event)
      note(open, { name, event }, check)
    }
  }
  const output = objectOf(events.at(-1)?.['response'])['output']
  const sent = items.map(({ done }) => done)
  check(JSON.stringify(output) === JSON.stringify(sent), 'the last output differs from the events')
  return faults
}

/** A source that follows the end of its message belongs to it too. */
function cite({ done }: ItemSeen, event: JsonObject): void {
  const place = event['content_index']
  const part = objectOf(arrayOf(done?.['content'])[typeof place === 'number' ? place : 0])
  arrayOf(part['annotations']).push(event['annotation'] ?? null)
}

interface ItemSeen {
  readonly id: unknown
  readonly type: unknown
  /** The fragments so far, by kind and position. */
  readonly texts: Map<string, string>
  done: JsonObject | null
}

function note(
  item: ItemSeen,
  { name, event }: { name: string; event: JsonObject },
  check: (isRight: boolean, fault: string) => void,
): void {
  const place = JSON.stringify(event['content_index'] ?? event['summary_index'] ?? null)
  const key = name.replace(/\.(?:delta|done)$/, '') + place
  if (name.endsWith('.delta')) {
    item.texts.set(key, (item.texts.get(key) ?? '') + (stringOf(event['delta']) ?? ''))
    return
  }
  if (!name.endsWith('.done') || name.includes('_part')) return
  const whole = event['text'] ?? event['refusal'] ?? event['arguments'] ?? event['input']
  check((item.texts.get(key) ?? '') === whole, `${name} differs from its fragments`)
}
