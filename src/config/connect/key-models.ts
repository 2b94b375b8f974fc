/** Finds the models that a client shall offer, with the facts that its settings need. */
import type { Client, ClientModel } from '../client-settings.js'
import type { Catalogue } from '../config.js'
import { isObject, numberOf, stringOf, type JsonObject, type JsonValue } from '../../base/json.js'
import { converses, MODEL_NAME } from '../../formats/chat/model-facts.js'

/** One of each vendor, for a list that cannot be read. */
const EXAMPLES = ['gpt-5.4', 'claude-sonnet-5-5', 'gemini-3.5-flash']
/** Number of examples. */
const SHOWN_EXAMPLES = 2

const ANSWER_MS = 5_000

/** A list with at least one model. */
export type ClientModels = readonly [ClientModel, ...ClientModel[]]

/** Two models that every gateway with the shipped routes has; the client's own vendor first. */
export function exampleModels(client: Client, catalogue: Catalogue): ClientModels {
  const [first = '', ...others] = preferred(client, EXAMPLES, (id) => id).slice(0, SHOWN_EXAMPLES)
  return [modelOf(first, catalogue), ...others.map((id) => modelOf(id, catalogue))]
}

/** The models with these ids; null if there is none. */
export function modelsNamed(ids: readonly string[], catalogue: Catalogue): ClientModels | null {
  const [first, ...others] = ids.map((id) => modelOf(id, catalogue))
  return first === undefined ? null : [first, ...others]
}

/** The models among these that converse, the client's own vendor first; null if there is none. */
export function conversing(
  client: Client,
  ids: readonly string[],
  catalogue: Catalogue,
): ClientModels | null {
  const chatting = ids.filter((id) => {
    const facts = catalogue.find(id)
    return facts === null || converses(facts)
  })
  return modelsNamed(
    preferred(client, chatting, (id) => id),
    catalogue,
  )
}

function modelOf(id: string, catalogue: Catalogue): ClientModel {
  const { contextWindow, maxOutputTokens, vision } = catalogue.find(id) ?? {}
  return { id, contextWindow, maxOutputTokens, vision }
}

function preferred<Item>({ prefers }: Client, items: readonly Item[], idOf: (item: Item) => string): Item[] {
  const isOwn = (item: Item): boolean => prefers !== null && idOf(item).startsWith(prefers)
  return [...items.filter(isOwn), ...items.filter((item) => !isOwn(item))]
}

/** The models that a key may use, or why they cannot be read. */
export async function readModels(
  client: Client,
  { url, key }: { readonly url: string; readonly key: string },
): Promise<ClientModels | { readonly problem: string }> {
  try {
    const headers = { authorization: `Bearer ${key}` }
    const reply = await fetch(`${url}/v1/models`, { headers, signal: AbortSignal.timeout(ANSWER_MS) })
    if (!reply.ok) return { problem: `${url}/v1/models answers ${String(reply.status)}` }
    const body: unknown = await reply.json()
    const listed = isObject(body) && Array.isArray(body['data']) ? body['data'] : []
    const models = preferred(client, listed.flatMap(modelIn), ({ id }) => id)
    const [first, ...others] = models
    if (first === undefined) return { problem: `${url}/v1/models lists no model for conversations` }
    return [first, ...others]
  } catch {
    return { problem: `${url}/v1/models does not answer` }
  }
}

/** Models that do not answer texts with texts are left out, and names that no gateway has. */
function modelIn(value: JsonValue): ClientModel[] {
  if (!isObject(value)) return []
  const id = stringOf(value['id'])
  const input = modalities(value, 'input')
  const isOfText = [input, modalities(value, 'output')].every(
    (kinds) => kinds.length === 0 || kinds.includes('text'),
  )
  if (id === undefined || !MODEL_NAME.test(id) || !isOfText) return []
  return [
    {
      id,
      contextWindow: numberOf(value['context_length']),
      maxOutputTokens: numberOf(value['max_output_tokens']),
      vision: input.length === 0 ? undefined : input.includes('image'),
    },
  ]
}

function modalities(model: JsonObject, side: 'input' | 'output'): readonly JsonValue[] {
  const list = model[`${side}_modalities`]
  return Array.isArray(list) ? list : []
}
