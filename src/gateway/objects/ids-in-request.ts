/**
 * Finds the objects that a request to a chat endpoint names. Only the places where the vendor's API has ids
 * count: clients send ids of their own in other members, such as the threads of Codex in `client_metadata`.
 * Pure.
 *
 * Sources: the API references of OpenAI, Anthropic, Gemini and Mistral, read 2026-11-29.
 */
import { arrayOf, objectOf, stringOf, type JsonObject, type JsonValue } from '../../base/json.js'
import { longTextOf } from '../../formats/chat/long-text.js'
import type { WireFormat } from '../../formats/dialect.js'
import { idInMember, snakeCase } from './object-ids.js'

/** The vendors whose API has objects, by the formats of its requests. */
const VENDORS = {
  'openai-chat': 'openai',
  'openai-responses': 'openai',
  'responses-compact': 'openai',
  'openai-completions': 'openai',
  'openai-embeddings': 'openai',
  'openai-image-edits': 'openai',
  anthropic: 'anthropic',
  gemini: 'google',
  'gemini-embedding': 'google',
  'gemini-embeddings': 'google',
} as const satisfies Partial<Record<WireFormat, string>>
type Vendor = (typeof VENDORS)[keyof typeof VENDORS]

/** Paths of ids. Lists on the way are not in the path. */
const PATHS: Readonly<Record<Vendor, readonly string[]>> = {
  openai: [
    'messages.content.file.file_id',
    // Mistral's documents.
    'messages.content.file_id',
    'conversation',
    'conversation.id',
    'prompt.id',
    'prompt.variables.*.file_id',
    // A part of a message, a result of `file_search`, an annotation, the screenshot of a computer.
    ...['content', 'content.annotations', 'output', 'outputs', 'results'].map((at) => `input.${at}.file_id`),
    ...['', 'content.annotations.', 'environment.'].map((at) => `input.${at}container_id`),
    'tools.vector_store_ids',
    'tools.container',
    'tools.input_image_mask.file_id',
    // Pictures to edit.
    ...['images', 'mask', 'markup'].map((at) => `${at}.file_id`),
    ...['container', 'environment'].flatMap((at) =>
      ['container_id', 'file_ids', 'skills.skill_id'].map((id) => `tools.${at}.${id}`),
    ),
  ],
  anthropic: [
    'container',
    'container.id',
    'container.skills.skill_id',
    'user_profile_id',
    // An upload into the container, or a file that code execution made.
    'messages.content.file_id',
    'messages.content.content.file_id',
    'messages.content.content.content.file_id',
    // Images and documents, also in results and in documents of blocks.
    ...['', 'content.', 'source.content.', 'content.source.content.'].map(
      (at) => `messages.content.${at}source.file_id`,
    ),
  ],
  google: [
    'cachedContent',
    'tools.fileSearch.fileSearchStoreNames',
    ...['contents', 'systemInstruction', 'content', 'requests.content'].flatMap((at) => [
      `${at}.parts.fileData.fileUri`,
      `${at}.parts.functionResponse.parts.fileData.fileUri`,
    ]),
    // `countTokens` accepts a whole request as a member.
  ].flatMap((path) => [path, `generateContentRequest.${path}`]),
}

/** What may follow a member; `isId`: an id, or a list of them, may be its value. */
interface Place {
  isId: boolean
  readonly inner: Map<string, Place>
}

const ROOTS: Readonly<Record<Vendor, Place>> = {
  openai: placesOf('openai'),
  anthropic: placesOf('anthropic'),
  google: placesOf('google'),
}

function placesOf(vendor: Vendor): Place {
  const root: Place = { isId: false, inner: new Map() }
  for (const path of PATHS[vendor]) {
    let place = root
    for (const name of path.split('.')) {
      const next = place.inner.get(name) ?? { isId: false, inner: new Map() }
      place.inner.set(name, next).set(snakeCase(name), next)
      place = next
    }
    place.isId = true
  }
  return root
}

/** The vendor whose objects the requests of a format can name; null if it has none. */
export function vendorOf(wire: WireFormat): Vendor | null {
  const vendors: Partial<Record<WireFormat, Vendor>> = VENDORS
  return vendors[wire] ?? null
}

/** A value of the body, and what the vendor's API has there. */
interface Pending {
  readonly value: JsonObject | JsonValue[]
  readonly place: Place
  readonly name: string
  readonly parent: string
}

/**
 * The objects that a parsed body names at the vendor. Stored responses are the gateway's own, and it resolves
 * them itself.
 */
export function idsInRequest(body: JsonObject, vendor: Vendor): Set<string> {
  const ids = new Set<string>()
  const pending: Pending[] = [{ value: body, place: ROOTS[vendor], name: '', parent: '' }]
  const take = (value: JsonValue | undefined, at: Omit<Pending, 'value'>): void => {
    if (typeof value === 'string') {
      const id = at.place.isId ? idInMember(at.name, at.parent, value) : null
      if (id !== null) ids.add(id)
    } else if (typeof value === 'object' && value !== null) pending.push({ value, ...at })
  }
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const { value, place, name, parent } = next
    if (Array.isArray(value)) {
      for (const item of value) take(item, { place, name, parent })
      continue
    }
    // Long texts stay encoded, and are never ids.
    const read = (key: string, inner: Place): void => {
      if (longTextOf(value, key) === null) take(value[key], { place: inner, name: key, parent: name })
    }
    for (const [key, inner] of place.inner) {
      if (key !== '*') {
        if (Object.hasOwn(value, key)) read(key, inner)
      } else for (const other in value) read(other, inner)
    }
  }
  return ids
}

/** The ids of the sound of earlier replies in a request for a chat completion. */
export function soundsInRequest(body: JsonObject): string[] {
  return arrayOf(body['messages']).flatMap((message) => {
    const { audio } = objectOf(message)
    const id = longTextOf(objectOf(audio), 'id') === null ? stringOf(objectOf(audio)['id']) : undefined
    return id === undefined ? [] : [id]
  })
}
