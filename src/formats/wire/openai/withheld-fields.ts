/**
 * Removes fields of a client's own body that would change what the gateway has checked: the model, the
 * provider (and so the price), the number of choices, or the length of the reply.
 *
 * Sources: OpenRouter "Model Fallbacks", "Provider Routing", "Plugins", "Presets"; LiteLLM "Fallbacks",
 * "Router"; Vercel AI Gateway "Provider Options"; vLLM "Sampling Parameters"; read 2026-11-22.
 */
import { isObject, type JsonObject } from '../../../base/json.js'
import type { Edit } from '../json/splice.js'

/** Fields that choose another model or provider, or work that is charged in addition to tokens. */
const ROUTING = [
  'content_policy_fallbacks',
  'context_window_fallbacks',
  'custom_llm_provider',
  'fallback_models',
  'fallbacks',
  'model_list',
  'models',
  'plugins',
  'preset',
  'providerOptions',
  'provider_options',
  'route',
  'router_settings_override',
  'transforms',
  'user_config',
]

/** Other names for `n` and `max_tokens`, which limits and budgets do not reserve for. */
const ALIASES = [
  'best_of',
  'candidateCount',
  'candidate_count',
  'generationConfig',
  'generation_config',
  'maxOutputTokens',
  'max_gen_len',
  'max_length',
  'max_new_tokens',
  'max_tokens_to_sample',
  'num_generations',
  'num_predict',
  'num_return_sequences',
]

/** The fields of a format that are removed, and those that the gateway reads before it admits a request. */
interface OwnFields {
  readonly withheld: ReadonlySet<string>
  readonly checked: ReadonlySet<string>
}

/** Chat completions. */
const CHAT_FIELDS: OwnFields = {
  withheld: new Set([...ROUTING, ...ALIASES, 'max_output_tokens']),
  checked: new Set([
    'max_completion_tokens',
    'max_tokens',
    'messages',
    'model',
    'n',
    'provider',
    'service_tier',
    'stream',
    'tools',
    'web_search_options',
  ]),
}

export const RESPONSES_FIELDS: OwnFields = {
  withheld: new Set([...ROUTING, ...ALIASES, 'max_completion_tokens', 'max_tokens', 'n']),
  checked: new Set([
    'background',
    'conversation',
    'input',
    'max_output_tokens',
    'max_tool_calls',
    'model',
    'previous_response_id',
    'prompt',
    'provider',
    'service_tier',
    'store',
    'stream',
    'tools',
  ]),
}

/** Members of OpenRouter's `provider` that only restrict the choice: privacy, price, strictness. */
const NARROWING: ReadonlySet<string> = new Set([
  'allow_fallbacks',
  'data_collection',
  'enforce_distillable_text',
  'max_price',
  'require_parameters',
  'zdr',
])

/** Longer keys are none of these fields. */
const LONGEST_KEY = 32

/**
 * Edits that remove such fields from the body; `drop` is called for each. A field whose name differs from a
 * checked one only in case is removed too, because upstreams written in Go read `MODEL` as `model`.
 */
export function withheldEdits(body: JsonObject, drop: (path: string) => void, own = CHAT_FIELDS): Edit[] {
  const edits: Edit[] = []
  for (const key in body) {
    const value = body[key] ?? null
    if (value === null || !isWithheld(key, own)) continue
    drop(key)
    edits.push({ key, json: null })
  }
  narrow('provider', (member) => !NARROWING.has(member))
  // Some gateways merge its members into the body.
  narrow('extra_body', (member) => isChecked(member, own) || member === 'extra_body')
  return edits

  function narrow(key: string, isDropped: (member: string) => boolean): void {
    const value = body[key] ?? null
    if (value === null) return
    if (!isObject(value)) {
      drop(key)
      edits.push({ key, json: null })
      return
    }
    const json = without(value, isDropped, (member) => drop(`${key}.${member}`))
    if (json !== undefined) edits.push({ key, json })
  }
}

/** The object's JSON without the dropped members: null if none is left, undefined if nothing changes. */
function without(
  object: JsonObject,
  isDropped: (member: string) => boolean,
  drop: (member: string) => void,
): string | null | undefined {
  const remaining: JsonObject = {}
  let dropped = 0
  for (const [member, inner] of Object.entries(object)) {
    if (isDropped(member)) {
      dropped += 1
      drop(member)
    } else if (inner !== undefined) remaining[member] = inner
  }
  if (dropped === 0) return undefined
  return Object.keys(remaining).length === 0 ? null : JSON.stringify(remaining)
}

/** Whether a top-level member is one of the fields, or a checked one in another case. */
function isWithheld(key: string, own: OwnFields): boolean {
  return own.withheld.has(key) || (!own.checked.has(key) && isChecked(key, own))
}

function isChecked(key: string, { withheld, checked }: OwnFields): boolean {
  if (key.length > LONGEST_KEY) return false
  // Through capitals, because "ſ" is lower case and equals "s" for readers that ignore case.
  const plain = key.toUpperCase().toLowerCase()
  return [key, plain].some((name) => checked.has(name) || withheld.has(name))
}
