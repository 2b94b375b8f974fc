/**
 * What a vendor or a cloud takes of a format, as tables. Codecs ask here; they do not know vendors by name.
 */

import type { SchemaRules } from './wire/fit-schema.js'
import type { CallIdRule } from './wire/openai/tools.js'
import type { NameRule } from './wire/tool-names.js'

/** The clouds that serve Claude with the Messages API. */
export type ClaudePlatform = 'bedrock' | 'vertex' | 'azure'

/**
 * The beta features of Anthropic's API that each cloud accepts; it answers 400 "invalid beta flag" to others.
 *
 * Sources: Amazon Bedrock user guide, "Anthropic Claude Messages API" (`anthropic_beta`); Claude
 * documentation, "Claude on Vertex AI" and "Claude in Microsoft Foundry"; the list of accepted features by
 * provider in LiteLLM (`anthropic_beta_headers_config.json`). Read 2026-11-29.
 */
export const CLAUDE_BETAS: Readonly<Record<ClaudePlatform, readonly string[]>> = {
  bedrock: [
    'compact-2026-01-12',
    'computer-use-2024-10-22',
    'computer-use-2025-01-24',
    'computer-use-2025-11-24',
    'context-1m-2025-08-07',
    'context-management-2025-06-27',
    'dangerous-tool-use-2026-09-03',
    'dev-full-thinking-2025-05-14',
    'effort-2025-11-24',
    'fine-grained-tool-streaming-2025-05-14',
    'interleaved-thinking-2025-05-14',
    'mid-conversation-output-config-2026-07-01',
    'mid-conversation-tool-changes-2026-07-01',
    'output-128k-2025-02-19',
    'thinking-binding-controls-2026-08-01',
    'thinking-display-updates-2026-08-18',
    'token-efficient-tools-2025-02-19',
    'tool-examples-2025-10-29',
    'tool-search-tool-2025-10-19',
  ],
  vertex: [
    'compact-2026-01-12',
    'compact-2026-09-04',
    'computer-use-2025-01-24',
    'computer-use-2025-11-24',
    'context-1m-2025-08-07',
    'context-management-2025-06-27',
    'dangerous-tool-use-2026-09-03',
    'interleaved-thinking-2025-05-14',
    'per-turn-control-2026-07-01',
    'thinking-binding-controls-2026-08-01',
    'thinking-display-updates-2026-08-18',
    'tool-search-tool-2025-10-19',
    'web-search-2025-03-05',
  ],
  azure: [
    'advanced-tool-use-2025-11-20',
    'code-execution-2025-08-25',
    'computer-use-2025-01-24',
    'computer-use-2025-11-24',
    'context-1m-2025-08-07',
    'context-management-2025-06-27',
    'dangerous-tool-use-2026-09-03',
    'effort-2025-11-24',
    'files-api-2025-04-14',
    'interleaved-thinking-2025-05-14',
    'mcp-client-2025-04-04',
    'mcp-client-2025-11-20',
    'per-turn-control-2026-07-01',
    'prompt-caching-scope-2026-01-05',
    'skills-2025-10-02',
    'structured-outputs-2025-11-13',
    'thinking-display-updates-2026-08-18',
    'web-fetch-2025-09-10',
    'web-search-2025-03-05',
  ],
}

/** A field of the Messages API that belongs to beta features. */
export interface BetaField {
  /** Its place: at the top, in `output_config`, in each tool, block of a message, or `cache_control`. */
  readonly place: 'body' | 'output_config' | 'tools' | 'messages' | 'cache_control'
  readonly name: string
  /** The features that it belongs to, any of which is enough. Empty: no feature makes a cloud take it. */
  readonly betas: readonly string[]
  /** The clouds that take it without a feature. */
  readonly takenBy?: readonly ClaudePlatform[]
}

const ADVANCED_TOOLS = 'advanced-tool-use-2025-11-20'
const TOOL_SEARCH = ['tool-search-tool-2025-10-19', ADVANCED_TOOLS]
const CONTAINERS = ['code-execution-2025-08-25', 'skills-2025-10-02']
const CONTEXT_EDITS = 'context-management-2025-06-27'
const COMPACTION = ['compact-2026-01-12', 'compact-2026-09-04']

/**
 * Fields that a cloud refuses without their feature: "Extra inputs are not permitted".
 *
 * Sources: Claude documentation, the page of each feature; anthropics/claude-agent-sdk-python issue 694
 * (`eager_input_streaming`), caozhiyuan/copilot-api pull request 261 (`cache_control.scope`). Read
 * 2026-11-29.
 */
export const BETA_FIELDS: readonly BetaField[] = [
  {
    place: 'body',
    name: 'context_management',
    betas: [CONTEXT_EDITS, ...COMPACTION],
  },
  { place: 'body', name: 'container', betas: CONTAINERS },
  { place: 'body', name: 'diagnostics', betas: ['cache-diagnosis-2026-04-07'] },
  { place: 'body', name: 'fallbacks', betas: ['fallback-credit-2026-06-01'] },
  { place: 'body', name: 'inference_geo', betas: [] },
  { place: 'body', name: 'mcp_servers', betas: ['mcp-client-2025-11-20', 'mcp-client-2025-04-04'] },
  { place: 'body', name: 'output_format', betas: ['structured-outputs-2025-11-13'] },
  { place: 'body', name: 'speed', betas: ['fast-mode-2026-02-01'] },
  { place: 'output_config', name: 'task_budget', betas: ['task-budgets-2026-03-13'] },
  { place: 'tools', name: 'allowed_callers', betas: [ADVANCED_TOOLS, ...CONTAINERS] },
  { place: 'tools', name: 'defer_loading', betas: TOOL_SEARCH },
  { place: 'tools', name: 'eager_input_streaming', betas: [], takenBy: ['azure'] },
  { place: 'tools', name: 'input_examples', betas: ['tool-examples-2025-10-29', ADVANCED_TOOLS] },
  { place: 'messages', name: 'caller', betas: [ADVANCED_TOOLS, ...CONTAINERS] },
  { place: 'cache_control', name: 'scope', betas: ['prompt-caching-scope-2026-01-05'] },
]

/** A tool that the provider runs, the blocks of its use, or an edit of the context: a part of features. */
export interface BetaTool {
  /** The types of tools, blocks and edits; the name of a `server_tool_use`. */
  readonly kinds: RegExp
  /** The features, any of which is enough. */
  readonly betas: readonly string[]
}

/**
 * Tools and blocks that a cloud refuses if it has none of their features: "Input tag … found using type does
 * not match any of the expected tags".
 *
 * Sources: Claude documentation, the page of each tool, and "Claude on Amazon Bedrock", "Features not
 * supported". Read 2026-11-29.
 */
export const BETA_TOOLS: readonly BetaTool[] = [
  {
    kinds: /^mcp_(?:toolset|tool_use|tool_result)$/,
    betas: ['mcp-client-2025-11-20', 'mcp-client-2025-04-04'],
  },
  {
    kinds: /^(?:(?:bash_|text_editor_)?code_execution(?:_\d+|_tool_result)?|container_upload)$/,
    betas: CONTAINERS,
  },
  { kinds: /^web_fetch(?:_\d+|_tool_result)?$/, betas: ['web-fetch-2025-09-10'] },
  { kinds: /^web_search(?:_\d+|_tool_result)?$/, betas: ['web-search-2025-03-05'] },
  { kinds: /^tool_search_tool_(?:result|(?:regex|bm25)(?:_\d+)?)$/, betas: TOOL_SEARCH },
  { kinds: /^advisor(?:_\d+|_tool_result)?$/, betas: ['advisor-tool-2026-03-01'] },
  { kinds: /^compact(?:ion|_\d+)$/, betas: COMPACTION },
  { kinds: /^clear_(?:tool_uses|thinking)_\d+$/, betas: [CONTEXT_EDITS] },
  { kinds: /^fallback$/, betas: ['fallback-credit-2026-06-01'] },
]

/** A part of chat completions for a document: `file` has a URL or data in `file_data`. */
type DocumentPart = 'file' | 'document_url' | 'file_url'

const NOT_WORD = /[^A-Za-z0-9_-]/gu

type NamingVendor = 'openai' | 'anthropic' | 'converse' | 'gemini' | 'moonshot'

/**
 * The names of tools that each format's vendors take.
 *
 * Sources: OpenAI API reference, `function.name` (the other vendors of its format take no more);
 * Anthropic's error "String should match pattern '^[a-zA-Z0-9_-]{1,128}$'", also of Claude on Bedrock and
 * Vertex AI; botocore 1.44.5, `ToolName` of Bedrock Runtime; `FunctionDeclaration.name` in the types of
 * @google/genai 3.1.0; Moonshot's error "function name is invalid, must start with a letter and can contain
 * letters, numbers, underscores, and dashes". Read 2026-11-30.
 */
export const TOOL_NAMES: Readonly<Record<NamingVendor, NameRule>> = {
  openai: { refused: NOT_WORD, maxLength: 64 },
  anthropic: { refused: NOT_WORD, maxLength: 128 },
  converse: { refused: NOT_WORD, maxLength: 64 },
  gemini: { refused: /[^A-Za-z0-9_.:-]/gu, maxLength: 128, start: { taken: /^[A-Za-z_]/, before: '_' } },
  moonshot: { refused: NOT_WORD, maxLength: 64, start: { taken: /^[A-Za-z]/, before: 'f_' } },
}

/** The vendors and platforms with rules for the schemas of tools. */
type SchemaVendor = 'openai' | 'anthropic' | 'bedrock' | 'nova' | 'gemini' | 'moonshot'

const COMBINED = ['anyOf', 'oneOf', 'allOf', '$ref']

/**
 * The rules for the schema of a tool's parameters. Gemini takes only the keywords of `GEMINI_KEYWORDS`
 * beside.
 *
 * Sources: OpenAI's errors "array schema missing items" and "schema must have type 'object' and not have
 * 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level". Anthropic's errors "input_schema does not support
 * oneOf, allOf, or anyOf at the top level" and "It must match JSON Schema draft 2020-12", also of Claude on
 * Bedrock; for names of properties, `wire/property-names.ts`. Amazon Nova user guide,
 * "Troubleshooting tool calls": only `type`, `properties` and `required` at the root; pydantic/pydantic-ai
 * issue 1623: no `$defs`. Gemini API reference, `Schema`: `$ref` is `#` or begins with `#/$defs/`. Moonshot,
 * "Moonshot Flavored JSON Schema" (MoonshotAI/walle), and its error "parameters.type is required and must be
 * object". Read 2026-11-29 and 2026-11-30.
 */
export const SCHEMA_RULES: Readonly<Record<SchemaVendor, SchemaRules>> = {
  openai: { arrayItems: true, notAtRoot: [...COMBINED, 'enum', 'not'] },
  anthropic: { arrayItems: false, notAtRoot: COMBINED },
  bedrock: { arrayItems: false, notAtRoot: COMBINED },
  nova: {
    arrayItems: false,
    notAtRoot: COMBINED,
    onlyAtRoot: ['type', 'properties', 'required'],
    withoutReferences: true,
  },
  gemini: { arrayItems: false, notAtRoot: [] },
  moonshot: { arrayItems: false, notAtRoot: [...COMBINED, 'enum', 'not'], typed: true },
}

/** What a vendor of chat completions has of its own, beside the quirks of its preset. */
export interface ChatVendor {
  /** Its part for documents, by URL and as data; absent: it takes those of OpenAI, as data or by id only. */
  readonly documents?: DocumentPart
  readonly names?: NameRule
  readonly callIds?: CallIdRule
  readonly schemas?: SchemaRules
}

/**
 * The presets with such differences.
 *
 * Sources: OpenAI, "File inputs" (an external file URL is not supported by chat completions); OpenRouter,
 * "PDF Inputs"; Mistral, "Document QnA", and the part as AI SDK's provider sends it, and its error "Tool call
 * id was … but must be a-z, A-Z, 0-9, with a length of 9"; Perplexity, "File attachments" (a URL, or base64
 * without a prefix). Read 2026-11-29 and 2026-11-30.
 */
export const CHAT_VENDORS: Readonly<Record<string, ChatVendor>> = {
  openrouter: { documents: 'file' },
  mistral: { documents: 'document_url', callIds: { taken: /^[A-Za-z0-9]{9}$/, length: 9 } },
  moonshot: { names: TOOL_NAMES.moonshot, schemas: SCHEMA_RULES.moonshot },
  perplexity: { documents: 'file_url' },
}

/**
 * The keywords of JSON Schema that Gemini takes, or that its encoder expresses with others.
 *
 * Source: Gemini API reference, `Schema` and `responseJsonSchema`, read 2026-11-20.
 */
export const GEMINI_KEYWORDS: ReadonlySet<string> = new Set([
  '$defs',
  '$ref',
  'additionalProperties',
  'allOf',
  'anyOf',
  'const',
  'definitions',
  'description',
  'enum',
  'exclusiveMaximum',
  'exclusiveMinimum',
  'format',
  'items',
  'maxItems',
  'maximum',
  'minItems',
  'minimum',
  'nullable',
  'prefixItems',
  'properties',
  'required',
  'title',
  'type',
])
