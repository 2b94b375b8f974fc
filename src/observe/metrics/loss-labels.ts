/**
 * The label `field` of lost fields. Clients choose the names of fields, so its values are from a closed set.
 * The list is here and not in the tables of the formats, because the process that adds up the metrics of
 * the others loads no format.
 */

/** Members of requests and replies, and types of their parts, in all formats. */
const WORDS = new Set(
  `additionalModelRequestFields allowed_callers allowed_tools annotations anthropic-beta arguments audio
  audioTimestamp bash_code_execution_tool_result browser_state cache_control cachedContent call_id
  caller candidateCount candidates citations code_execution_tool_result codeExecution
  codeExecutionResult compaction container container_upload content contents context context_management
  continuationToken custom data defer_loading description detail developer diagnostics
  disable_parallel_tool_use display document effort enableAffectiveDialog enableEnhancedCivicAnswers
  encrypted_content enum error executableCode executed_tools extra_body extra_content file file_data
  file_id fileData filename filter finish_reason finishReason format frequency_penalty frequencyPenalty
  function function_call functionCall functionCallingConfig functionDeclarations functionResponse
  functions generateContentRequest generationConfig grammar image image_url imageConfig images include
  include_obfuscation include_usage inference_geo inferenceConfig inlineData input input_audio
  input_examples instructions is_error json_schema labels logit_bias logprobs max_completion_tokens
  max_output_tokens max_tokens maxOutputTokens maxTokens mcp_servers mcp_tool_result mcp_tool_use
  mediaResolution messages metadata mime_type modalities model modelArmorConfig modelSelectionConfig
  moderation n name opaque output output_config output_format outputConfig parallel_tool_calls
  parameters parts prediction presence_penalty presencePenalty previous_response_id prompt
  prompt_cache_key prompt_cache_options prompt_cache_retention reasoning reasoning_content
  reasoning_details reasoning_effort redacted reference refusal reply response response_format
  responseLogprobs responseMimeType responseModalities responseSchema retrievalConfig role
  routingConfig safety_identifier safetySettings schema search_result seed server_tool_use service_tier
  serviceTier signature signatures speechConfig speed stop stop_reason stop_sequence stop_sequences
  stopSequences store stream stream_options strict summary system system_fingerprint systemInstruction
  temperature text text_editor_code_execution_tool_result thinking thinkingBudget thinkingConfig
  thoughtSignature title tool tool_addition tool_call_id tool_calls tool_choice tool_content
  tool_reference tool_removal toolCall toolConfig toolResponse tools top_k top_logprobs top_p topK topP
  truncation ttl type url usage user user_id user_profile_id verbosity video voice
  web_fetch_tool_result web_search web_search_options web_search_tool_result workspace_id`.split(/\s+/),
)

/** Maximum depth of a path in the label; deeper fields count for their parent. */
const MAX_DEPTH = 4

/**
 * `messages[3].content[0].detail` → `messages.content.detail`; `zzz` → `other`.
 *
 * Maps the path of a lost field to a label value from a closed set. Clients choose the names of fields, so
 * unknown names become `other`.
 */
export function fieldLabel(path: string): string {
  const segments = path
    .slice(0, 200)
    .split(/[.[\]]+/)
    .filter((segment) => segment !== '' && !/^\d+$/.test(segment))
    .slice(0, MAX_DEPTH)
  if (segments.length === 0) return 'other'
  const first = segments[0]
  if (first === undefined || !WORDS.has(first)) return 'other'
  return segments.map((segment) => (WORDS.has(segment) ? segment : 'other')).join('.')
}
