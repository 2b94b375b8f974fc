/**
 * What guardrails and the cache make of each member of a client's body, for each format. A member that is not
 * listed here is `unseen` for guardrails and part of the cache's key, because providers add members.
 */
import { isObject, type JsonObject, type JsonValue } from '../base/json.js'
import type { WireFormat } from '../formats/dialect.js'
import { stringifyExact } from '../formats/wire/json/exact-numbers.js'
import type { Steps } from '../base/steps.js'

/**
 * The kind of a member:
 *
 * - `text`: text that guardrails judge. It is unseen if no judged text is equal to it.
 * - `value`: a JSON value that is judged as arguments or as the result of a call.
 * - `schema`: a JSON schema, unseen if it has text such as a description.
 * - `media`: an image or a file. The part that contains it is noted before its members are looked at, so that
 *   one that is still there belongs to a part of another type: it is unseen.
 * - `state`: state of the provider, such as a signature; unseen if it has spaces or other letters.
 * - `noted`: the decoder judges or notes all of it.
 * - `unjudged`: text that is not judged, such as the description of a tool; unseen.
 * - `harmless`: numbers, ids and words of a closed set; unseen if a string is not such a word. Own rules
 *   search the words, too.
 */
type Leaf = 'text' | 'value' | 'schema' | 'media' | 'state' | 'noted' | 'unjudged' | 'harmless'

/** Members of an object or of the objects in a list; `['text', …]` is a text or such objects. */
export interface Members {
  readonly [name: string]: Leaf | Members | readonly ['text', Members]
}

/** These members, all of one kind. */
function all(kind: Leaf, names: string): Members {
  return Object.fromEntries(
    names
      .trim()
      .split(/\s+/)
      .map((name) => [name, kind]),
  )
}

/** A choice of tools in any of OpenAI's forms, and Anthropic's. */
const TOOL_CHOICE: Members = {
  ...all('harmless', 'type name mode disable_parallel_tool_use'),
  function: all('harmless', 'name'),
  custom: all('harmless', 'name'),
  get tools(): Members {
    return TOOL_CHOICE
  },
  get allowed_tools(): Members {
    return TOOL_CHOICE
  },
}
/** A mark for the provider's cache. */
const CACHE_MARK = all('harmless', 'type ttl mode')
const CHAT_PART: Members = {
  type: 'harmless',
  cache_control: CACHE_MARK,
  prompt_cache_breakpoint: CACHE_MARK,
  ...all('text', 'text refusal thinking'),
  video_url: 'media',
  signature: 'state',
  image_url: { url: 'media', detail: 'harmless' },
  input_audio: all('media', 'data format'),
  file: all('media', 'file_id file_data filename'),
}
const CHAT_TOOL: Members = {
  ...all('harmless', 'type name strict'),
  cache_control: CACHE_MARK,
  description: 'unjudged',
  function: { ...all('harmless', 'name strict'), description: 'unjudged', parameters: 'schema' },
  parameters: 'schema',
  custom: { name: 'harmless', description: 'unjudged', format: all('harmless', 'type syntax') },
}
const CHAT: Members = {
  ...all(
    'harmless',
    `model stream stream_options temperature top_p top_k min_p n max_tokens max_completion_tokens seed
    frequency_penalty presence_penalty repetition_penalty logprobs top_logprobs logit_bias user
    safety_identifier metadata store service_tier modalities audio reasoning_effort reasoning verbosity
    parallel_tool_calls function_call prompt_cache_key prompt_cache_retention thinking
    web_search_options best_of echo encoding_format dimensions provider usage search_settings
    reasoning_format include_reasoning`,
  ),
  messages: {
    ...all('harmless', 'role tool_call_id'),
    cache_control: CACHE_MARK,
    ...all('text', 'refusal reasoning_content reasoning'),
    content: ['text', CHAT_PART],
    tool_calls: {
      ...all('harmless', 'id type index'),
      function: { name: 'harmless', arguments: 'value' },
      custom: { name: 'harmless', input: 'text' },
      extra_content: 'state',
    },
    function_call: { name: 'harmless', arguments: 'value' },
    reasoning_details: {
      ...all('harmless', 'type id format index'),
      ...all('text', 'text summary'),
      ...all('state', 'data signature'),
    },
    audio: 'state',
  },
  tools: CHAT_TOOL,
  tool_choice: TOOL_CHOICE,
  functions: CHAT_TOOL,
  response_format: {
    type: 'harmless',
    json_schema: { ...all('harmless', 'name strict'), description: 'unjudged', schema: 'schema' },
  },
  prompt: 'text',
  input: 'text',
}

/** Blocks of Messages; those in a result have the same members. */
const ANTHROPIC_BLOCK: Members = {
  ...all('harmless', 'type id name tool_use_id is_error caller tool_name'),
  cache_control: CACHE_MARK,
  ...all('text', 'text thinking'),
  ...all('state', 'signature data'),
  source: { ...all('harmless', 'type media_type'), ...all('media', 'url file_id'), data: 'media' },
  input: 'value',
  get content(): readonly ['text', Members] {
    return ['text', ANTHROPIC_BLOCK]
  },
}
const MESSAGES: Members = {
  ...all(
    'harmless',
    `model max_tokens stream temperature top_p top_k metadata service_tier inference_geo
    speed context_management anthropic_version anthropic_beta`,
  ),
  cache_control: CACHE_MARK,
  thinking: all('harmless', 'type budget_tokens display'),
  tool_choice: TOOL_CHOICE,
  system: ['text', ANTHROPIC_BLOCK],
  messages: { role: 'harmless', content: ['text', ANTHROPIC_BLOCK] },
  tools: {
    ...all(
      'harmless',
      `type name strict eager_input_streaming defer_loading max_uses max_content_tokens
      allowed_callers allowed_domains blocked_domains display_width_px display_height_px display_number`,
    ),
    cache_control: CACHE_MARK,
    description: 'unjudged',
    input_schema: 'schema',
  },
  output_config: { effort: 'harmless', format: { type: 'harmless', schema: 'schema' } },
  output_format: { type: 'harmless', schema: 'schema' },
}

const RESPONSES_PART: Members = {
  ...all('harmless', 'type detail'),
  prompt_cache_breakpoint: CACHE_MARK,
  ...all('text', 'text refusal'),
  ...all('media', 'image_url file_id file_data file_url filename input_audio'),
  encrypted_content: 'state',
}
const RESPONSES_TOOL: Members = {
  ...all(
    'harmless',
    `type name strict defer_loading execution external_web_access search_context_size user_location filters
    vector_store_ids max_num_results ranking_options container allowed_tools background quality size
    display_width display_height environment`,
  ),
  description: 'unjudged',
  parameters: 'schema',
  format: all('harmless', 'type syntax'),
  get tools(): Members {
    return RESPONSES_TOOL
  },
}
const RESPONSES: Members = {
  ...all(
    'harmless',
    `model stream stream_options store reasoning parallel_tool_calls max_output_tokens
    max_tool_calls temperature top_p truncation include metadata client_metadata user safety_identifier
    prompt_cache_key prompt_cache_retention service_tier background top_logprobs context_management`,
  ),
  // The gateway adds the turns of its own responses to the request, and notes those of the provider.
  previous_response_id: 'noted',
  instructions: 'text',
  input: [
    'text',
    {
      ...all('harmless', 'type role id status phase call_id name namespace execution'),
      content: ['text', RESPONSES_PART],
      arguments: 'value',
      output: ['text', RESPONSES_PART],
      input: 'text',
      summary: { type: 'harmless', text: 'text' },
      encrypted_content: 'state',
    },
  ],
  text: {
    verbosity: 'harmless',
    format: { ...all('harmless', 'type name strict'), description: 'unjudged', schema: 'schema' },
  },
  tools: RESPONSES_TOOL,
  tool_choice: TOOL_CHOICE,
}

const GEMINI_MEDIA: Members = {
  inlineData: all('media', 'mimeType data displayName'),
  fileData: all('media', 'mimeType fileUri displayName'),
}
const GEMINI_CONTENT: Members = {
  role: 'harmless',
  parts: {
    text: 'text',
    ...all('harmless', 'thought videoMetadata mediaResolution'),
    thoughtSignature: 'state',
    ...GEMINI_MEDIA,
    functionCall: { ...all('harmless', 'id name'), args: 'value' },
    functionResponse: {
      ...all('harmless', 'id name willContinue scheduling'),
      response: 'value',
      parts: GEMINI_MEDIA,
    },
  },
}
const GEMINI: Members = {
  ...all('harmless', `model safetySettings labels serviceTier taskType outputDimensionality store`),
  contents: GEMINI_CONTENT,
  content: GEMINI_CONTENT,
  systemInstruction: GEMINI_CONTENT,
  cachedContent: 'media',
  toolConfig: {
    functionCallingConfig: all('harmless', 'mode allowedFunctionNames'),
    ...all('harmless', 'retrievalConfig includeServerSideToolInvocations'),
  },
  tools: {
    functionDeclarations: {
      ...all('harmless', 'name behavior'),
      description: 'unjudged',
      ...all('schema', 'parameters parametersJsonSchema response responseJsonSchema'),
    },
    ...all('harmless', 'googleSearch googleSearchRetrieval codeExecution urlContext googleMaps'),
  },
  generationConfig: {
    ...all(
      'harmless',
      `temperature topP topK candidateCount maxOutputTokens seed presencePenalty frequencyPenalty
      responseLogprobs logprobs responseMimeType responseModalities mediaResolution
      speechConfig imageConfig enableEnhancedCivicAnswers audioTimestamp`,
    ),
    thinkingConfig: all('harmless', 'includeThoughts thinkingBudget thinkingLevel'),
    ...all('schema', 'responseSchema responseJsonSchema'),
  },
  get generateContentRequest(): Members {
    return GEMINI
  },
  get requests(): Members {
    return GEMINI
  },
}

/** Other members of a document are unseen with the document itself. */
const RERANK: Members = {
  ...all(
    'harmless',
    `model stream top_n return_documents rank_fields max_tokens_per_doc max_chunks_per_doc priority truncation
    truncate_prompt_tokens`,
  ),
  query: 'text',
  documents: 'noted',
}
const MODERATIONS: Members = {
  ...all('harmless', 'model stream'),
  input: ['text', { type: 'harmless', text: 'text', image_url: 'media' }],
}
const IMAGES: Members = {
  ...all(
    'harmless',
    `model stream n size quality background output_format output_compression moderation partial_images complexity
    frame_count frame_duration_ms safety_identifier user response_format style input_fidelity`,
  ),
  prompt: 'text',
  // The pictures of an edit.
  ...all('media', 'images image mask markup'),
}
const TRANSCRIPTIONS: Members = {
  ...all(
    'harmless',
    `model stream response_format language languages temperature timestamp_granularities include chunking_strategy`,
  ),
  ...all('text', 'prompt keywords known_speaker_names'),
}
const SPEECH: Members = {
  ...all('harmless', 'model stream stream_format response_format speed sample_rate voice'),
  ...all('text', 'input instructions'),
}

/** The members of the bodies of a client's format. */
export function membersOf(wire: WireFormat): Members {
  switch (wire) {
    case 'anthropic':
      return MESSAGES
    case 'openai-responses':
    case 'responses-compact':
      return RESPONSES
    case 'gemini':
    case 'gemini-embedding':
    case 'gemini-embeddings':
      return GEMINI
    case 'openai-moderations':
    case 'mistral-moderations':
    case 'chat-moderations':
      return MODERATIONS
    case 'openai-images':
    case 'gemini-images':
    case 'openai-image-edits':
    case 'gemini-image-edits':
    case 'chat-images':
    case 'chat-image-edits':
      return IMAGES
    case 'openai-transcriptions':
    case 'mistral-transcriptions':
    case 'gemini-transcriptions':
    case 'openai-translations':
    case 'chat-transcriptions':
    case 'chat-mistral-transcriptions':
      return TRANSCRIPTIONS
    case 'openai-speech':
    case 'mistral-speech':
    case 'gemini-speech':
    case 'chat-speech':
    case 'chat-mistral-speech':
      return SPEECH
    case 'rerank':
    case 'cohere-rerank':
    case 'cohere-v1-rerank':
    case 'jina-rerank':
    case 'voyage-rerank':
    case 'vllm-rerank':
    case 'tei-rerank':
    case 'sglang-rerank':
    case 'deepinfra-rerank':
    case 'bedrock-rerank':
      return RERANK
    case 'openai-chat':
    case 'openai-completions':
    case 'openai-embeddings':
    case 'bedrock-embeddings':
    case 'converse':
      return CHAT
    default:
      return wire satisfies never
  }
}

/** The kind of a member; undefined if it is not listed. Protocol buffers read members in both spellings. */
export function memberOf(members: Members, name: string): Members[string] | undefined {
  if (Object.hasOwn(members, name)) return members[name]
  const camel = name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
  return Object.hasOwn(members, camel) ? members[camel] : undefined
}

/** Harmless strings that are longer, or have spaces or other letters, may be text for the model. */
const WORD = /^[!-~]{0,256}$/
/** Members of closed sets, and names that routes decide: rules for texts do not search them. */
const CLOSED: ReadonlySet<string> = new Set(['model', 'role', 'type'])
/** Members that are looked at in one turn. */
const STEP_MEMBERS = 20_000

/** A value that waits to be looked at; null: its member is not listed. */
interface Waiting {
  readonly value: JsonValue
  readonly path: string
  readonly kind: Members[string] | null
}

/** The texts of a request that guardrails judge, and the words of its harmless members. */
interface SeenTexts {
  readonly judged: ReadonlySet<string>
  /** The path of each word; filled by `unseenMember`. */
  readonly words: Map<string, string>
}

/** The path of the first member that may have text and that no guardrail judges; null if there is none. */
export function* unseenMember(
  body: JsonObject,
  members: Members,
  { judged, words }: SeenTexts,
): Steps<string | null> {
  const waiting: Waiting[] = [{ value: body, path: '', kind: members }]
  let count = 0
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    count += 1
    if (count % STEP_MEMBERS === 0) yield
    const { value, path, kind } = next
    if (value === null || typeof value === 'boolean' || value === '') continue
    if (Array.isArray(value)) {
      for (let at = value.length - 1; at >= 0; at -= 1) {
        waiting.push({ value: value[at] ?? null, path: `${path}[${at}]`, kind })
      }
      continue
    }
    if (kind === null) {
      if (!isObject(value) || Object.keys(value).length > 0) return path
    } else if (typeof kind === 'string') {
      if (!isSeen(value, kind, judged)) return path
      if (kind === 'harmless' || kind === 'schema') addWords(value, path, words)
    } else if (isObject(value)) {
      const inner = isTextOrMembers(kind) ? kind[1] : kind
      for (const [name, member = null] of Object.entries(value).reverse()) {
        const at = path === '' ? name : `${path}.${name}`
        waiting.push({ value: member, path: at, kind: memberOf(inner, name) ?? null })
      }
    } else if (typeof value === 'number' || !isTextOrMembers(kind) || !judged.has(value)) {
      return path
    }
  }
  return null
}

/** Whether the member is a text or a list of objects. */
export function isTextOrMembers(kind: Members[string]): kind is readonly ['text', Members] {
  return Array.isArray(kind)
}

/** Whether a value, no list, can be passed on without a note. */
function isSeen(value: string | number | JsonObject, kind: Leaf, judged: ReadonlySet<string>): boolean {
  switch (kind) {
    case 'media':
      return false
    case 'noted':
      return true
    case 'state':
      return isOpaque(value)
    case 'text':
      // Token ids are noted by their number.
      return typeof value === 'string' ? judged.has(value) : typeof value === 'number'
    case 'value':
      return isJudgedValue(value, judged)
    case 'unjudged':
      return false
    case 'schema':
      return !hasText(value, (name) => !SCHEMA_WORDS.has(name))
    case 'harmless':
      return !hasText(value, () => false)
    default:
      return kind satisfies never
  }
}

/** Base64 and other text that no model reads. */
const OPAQUE = /^[!-~]*$/

function isOpaque(value: JsonValue): boolean {
  if (typeof value === 'string') return OPAQUE.test(value)
  if (Array.isArray(value)) return value.every(isOpaque)
  if (!isObject(value)) return true
  return Object.entries(value).every(
    ([name, member]) => OPAQUE.test(name) && (member === undefined || isOpaque(member)),
  )
}

function isJudgedValue(value: string | number | JsonObject, judged: ReadonlySet<string>): boolean {
  if (typeof value === 'string') return judged.has(value)
  if (typeof value === 'number' || judged.has(stringifyExact(value))) return true
  // Results with one text only are judged as that text.
  return Object.values(value).every(
    (inner) => typeof inner === 'boolean' || (typeof inner === 'string' && judged.has(inner)),
  )
}

/** Members of schemas whose strings are words of JSON Schema or names of members. */
const SCHEMA_WORDS: ReadonlySet<string> = new Set([
  ...['type', 'format', 'required', '$ref', '$schema', '$id', 'additionalProperties', 'propertyOrdering'],
])

/** Whether a value has strings or names that are no words, or strings in members that `isText` names. */
function hasText(value: JsonValue, isText: (name: string) => boolean, name = ''): boolean {
  if (typeof value === 'string') return !WORD.test(value) || (value !== '' && isText(name))
  if (Array.isArray(value)) return value.some((item) => hasText(item, isText, name))
  if (!isObject(value)) return false
  return Object.entries(value).some(
    ([inner, member]) => !WORD.test(inner) || (member !== undefined && hasText(member, isText, inner)),
  )
}

/** Adds the strings and names in a value. */
function addWords(value: JsonValue, path: string, words: Map<string, string>): void {
  if (typeof value === 'string') {
    if (!CLOSED.has(path.slice(path.lastIndexOf('.') + 1)) && !words.has(value)) words.set(value, path)
  } else if (Array.isArray(value)) {
    for (const item of value) addWords(item, path, words)
  } else if (isObject(value)) {
    for (const [name, member = null] of Object.entries(value)) {
      if (!SCHEMA_WORDS.has(name) && !words.has(name)) words.set(name, path)
      addWords(member, `${path}.${name}`, words)
    }
  }
}
