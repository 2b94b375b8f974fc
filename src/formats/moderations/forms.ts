/**
 * The forms in which upstreams moderate texts and pictures.
 *
 * Sources, read 2026-11-29: OpenAI API reference, "Create moderation"; Mistral API, "Moderations"; the types
 * of their SDKs.
 */
import { isObject, objectOf, stringOf, type JsonObject, type JsonValue } from '../../base/json.js'
import type { ChatRequest } from '../chat/request.js'
import type { ModeratedPart, ModerateTask, Verdict } from '../chat/task.js'
import { tokenCount, type Usage } from '../chat/usage.js'
import type { Losses, TaskForm, TaskReader } from '../dialect.js'
import { errorIn } from '../wire/error-text.js'
import { refused } from '../wire/json/check-fields.js'
import { decodeErrorPayload } from '../wire/openai/decode-error.js'

function moderateTaskOf({ task }: ChatRequest): ModerateTask {
  if (task?.kind !== 'moderations') throw new Error('the request moderates nothing')
  return task
}

/** OpenAI's categories of those of Mistral's that have another name; the rest keep their name. */
const MISTRAL_NAMES: Readonly<Record<string, string>> = {
  hate_and_discrimination: 'hate',
  violence_and_threats: 'violence',
  dangerous_and_criminal_content: 'illicit',
  dangerous: 'illicit',
  criminal: 'illicit',
  selfharm: 'self-harm',
}

/** `POST /moderations` of OpenAI. */
export const openai: TaskForm = {
  path: () => '/moderations',
  basePath: (base) => base,
  encode: (request, losses) => {
    const { inputs, isSingle } = moderateTaskOf(request)
    dropOthers(request, losses)
    const [first = []] = inputs
    const isParts = inputs.length === 1 && (first.length !== 1 || first[0]?.type !== 'text')
    const texts = inputs.map(textOf)
    const input: JsonValue = isParts ? first.map(partBody) : isSingle ? (texts[0] ?? '') : texts
    return { model: request.model, input }
  },
  read: verdictReader((result) => {
    const { flagged } = result
    if (typeof flagged !== 'boolean') return null
    const { categories, scores } = judged(result, {})
    return { flagged, categories, scores }
  }),
}

/** `POST /moderations` of Mistral: texts only, other categories, and no `flagged`. */
export const mistral: TaskForm = {
  path: () => '/moderations',
  basePath: (base) => base,
  encode: (request, losses) => {
    const { inputs } = moderateTaskOf(request)
    dropOthers(request, losses)
    losses.drop('categories', 'approximated')
    const picture = inputs.flat().findIndex(({ type }) => type === 'image')
    if (picture !== -1) {
      throw refused(`input[${picture}]`, "Mistral's moderation reads texts only. Leave the picture out.")
    }
    return { model: request.model, input: inputs.map(textOf) }
  },
  read: verdictReader((result) => {
    const { categories, scores } = judged(result, MISTRAL_NAMES)
    if (Object.keys(categories).length === 0) return null
    return { flagged: Object.values(categories).includes(true), categories, scores }
  }),
}

function dropOthers({ rest }: ChatRequest, losses: Losses): void {
  for (const key of Object.keys(rest)) losses.drop(key, 'no-equivalent')
}

/** The texts of one input, in lines. */
function textOf(parts: readonly ModeratedPart[]): string {
  return parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n')
}

function partBody(part: ModeratedPart): JsonObject {
  return part.type === 'text'
    ? { type: 'text', text: part.text }
    : { type: 'image_url', image_url: { url: part.url } }
}

/**
 * The categories and scores under OpenAI's names. Of several with one name, the verdict is any, and the score
 * the largest.
 */
function judged(
  result: JsonObject,
  names: Readonly<Record<string, string>>,
): Pick<Verdict, 'categories' | 'scores'> {
  const categories: Record<string, boolean> = {}
  const scores: Record<string, number> = {}
  for (const [own, value] of Object.entries(objectOf(result['categories']))) {
    if (typeof value !== 'boolean') continue
    const name = Object.hasOwn(names, own) ? (names[own] ?? own) : own
    categories[name] = value || categories[name] === true
  }
  for (const [own, value] of Object.entries(objectOf(result['category_scores']))) {
    if (typeof value !== 'number') continue
    const name = Object.hasOwn(names, own) ? (names[own] ?? own) : own
    scores[name] = Math.max(value, scores[name] ?? 0)
  }
  return { categories, scores }
}

/** A reader of replies with one result for each input. */
function verdictReader(verdictOf: (result: JsonObject) => Verdict | null): TaskReader {
  return ({ body }, request) => {
    if (!isObject(body)) return null
    const { results } = body
    if (!Array.isArray(results)) {
      const error = errorIn(body)
      return error === null ? null : decodeErrorPayload(error)
    }
    const verdicts = results.map((each) => (isObject(each) ? verdictOf(each) : null))
    const known = verdicts.filter((verdict) => verdict !== null)
    const isWhole = known.length === verdicts.length && known.length === moderateTaskOf(request).inputs.length
    if (!isWhole) return null
    return {
      kind: 'moderations',
      verdicts: known,
      usage: usageIn(body),
      model: stringOf(body['model']) ?? null,
    }
  }
}

function usageIn(body: JsonObject): Usage {
  const { total_tokens: total, prompt_tokens: prompt } = objectOf(body['usage'])
  const input = tokenCount(prompt ?? total)
  return input === undefined ? {} : { input, output: 0 }
}
