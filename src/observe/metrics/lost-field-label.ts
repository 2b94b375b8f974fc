/**
 * Maps the path of a lost field to a label value from a closed set. Clients choose the names of fields, so
 * unknown names become `other`.
 */

/** Field names of requests and replies of the dialects. */
const WORDS = new Set(
  `allowed_callers allowed_tools annotations anthropic-beta arguments audio
  bash_code_execution_tool_result browser_state cache_control call_id candidateCount candidates
  citations code_execution_tool_result codeExecutionResult compaction container container_upload
  content contents context context_management custom data defer_loading description detail developer
  diagnostics display document effort encrypted_content enum executableCode executed_tools extra_body
  extra_content file file_data file_id fileData filename filter finish_reason format frequency_penalty
  frequencyPenalty function function_call functionCall functionCallingConfig functionResponse
  functions generationConfig grammar image image_url images include include_obfuscation include_usage
  inference_geo inlineData input input_audio input_examples instructions is_error json_schema
  logit_bias logprobs max_completion_tokens max_output_tokens max_tokens maxOutputTokens mcp_servers
  mcp_tool_result mcp_tool_use messages metadata mime_type modalities model moderation n name opaque
  output output_config output_format parallel_tool_calls parameters parts prediction presence_penalty
  presencePenalty previous_response_id prompt prompt_cache_key prompt_cache_options
  prompt_cache_retention reasoning reasoning_content reasoning_details reasoning_effort redacted
  reference refusal reply response_format responseLogprobs role safety_identifier safetySettings
  schema search_result seed server_tool_use service_tier signature signatures speed stop stop_reason
  stop_sequence stop_sequences stopSequences store stream stream_options strict summary system
  system_fingerprint systemInstruction temperature text text_editor_code_execution_tool_result
  thinking thinkingConfig title tool tool_addition tool_call_id tool_calls tool_choice tool_content
  tool_reference tool_removal toolCall toolConfig toolResponse tools top_k top_logprobs top_p topK
  topP truncation ttl type url usage user user_id user_profile_id verbosity video voice
  web_fetch_tool_result web_search web_search_options web_search_tool_result workspace_id`.split(
    /\s+/,
  ),
)

/** Field names of Gemini's format in camelCase. */
const GEMINI_WORDS = new Set(
  `audioTimestamp cachedContent codeExecution continuationToken enableAffectiveDialog
  enableEnhancedCivicAnswers error finishReason functionDeclarations generateContentRequest
  imageConfig labels mediaResolution modelArmorConfig modelSelectionConfig response
  responseMimeType responseModalities responseSchema retrievalConfig routingConfig serviceTier
  speechConfig thinkingBudget thoughtSignature`.split(/\s+/),
)

/** Maximum depth of a path in the label; deeper fields count for their parent. */
const MAX_DEPTH = 4

/** `messages[3].content[0].detail` → `messages.content.detail`; `zzz` → `other`. */
export function fieldLabel(path: string): string {
  const segments = path
    .slice(0, 200)
    .split(/[.[\]]+/)
    .filter((segment) => segment !== '' && !/^\d+$/.test(segment))
    .slice(0, MAX_DEPTH)
  if (segments.length === 0) return 'other'
  const first = segments[0]
  if (first === undefined || !isWord(first)) return 'other'
  return segments.map((segment) => (isWord(segment) ? segment : 'other')).join('.')
}

function isWord(segment: string): boolean {
  return WORDS.has(segment) || GEMINI_WORDS.has(segment)
}
