/**
 * Anthropic's rules for thinking blocks that clients send back, with its error messages.
 */
import { refuseAnthropic } from './errors.js'
import { arrayOf, isObject, objectOf, stringOf } from '../../chat/json.js'
import type { JsonObject, JsonValue } from '../../chat/json.js'
import type { RandomSource } from '../seeded-random.js'
import { signState, verifyState } from '../signature.js'

/** Models whose thinking is bound to the conversation before it. */
const BINDS = /^claude-\w+-5-[1-9](?!\d)/
const BETA = 'thinking-binding-controls-2026-08-01'

/** The signature of the thinking of a reply to `body`. */
export function thinkingSignature(
  body: JsonObject,
  thinking: string,
  random: RandomSource,
): string {
  const messages = arrayOf(body.messages).map(objectOf)
  return signState([thinking, prefixOf(body, messages, [])], random, 152)
}

/** Refuses altered thinking, and missing thinking if it is required. */
export function checkThinking(body: JsonObject, beta: JsonValue | undefined, model: string): void {
  const messages = arrayOf(body.messages).map(objectOf)
  const thinking = objectOf(body.thinking)
  for (const [index, message] of messages.entries()) {
    const blocks = arrayOf(message.content).map(objectOf)
    for (const [at, block] of blocks.entries()) {
      if (block.type !== 'thinking') {
        continue
      }
      const prefix = prefixOf(body, messages.slice(0, index), blocks.slice(0, at))
      const fits = checkBlock(block, prefix, `messages.${index}.content.${at}`)
      if (!fits && BINDS.test(model) && !isDropping(thinking, beta)) {
        refuse(
          `messages.${index}.content.${at}: Invalid \`signature\` in \`thinking\` block. The block is bound to a different conversation. Remove the block, or set \`thinking.block_binding.prefix_mismatch_behavior\` to "drop_block".`,
        )
      }
    }
  }
  if (thinking.type === 'enabled') {
    checkLoop(messages)
  }
}

function refuse(message: string): never {
  refuseAnthropic(400, message)
}

/** Whether the block follows the conversation that it was generated for. */
function checkBlock(block: JsonObject, prefix: string, path: string): boolean {
  const signature = stringOf(block.signature) ?? refuse(`${path}.signature: Field required`)
  const [own = false, before = false] = verifyState(
    [stringOf(block.thinking) ?? '', prefix],
    signature,
  )
  if (!own) {
    refuse(`${path}: Invalid \`signature\` in \`thinking\` block`)
  }
  return before
}

function isDropping(thinking: JsonObject, beta: JsonValue | undefined): boolean {
  const { prefix_mismatch_behavior } = objectOf(thinking.block_binding)
  return prefix_mismatch_behavior === 'drop_block' && stringOf(beta)?.includes(BETA) === true
}

/** The conversation before a block, without cache control. */
function prefixOf(
  body: JsonObject,
  messages: readonly JsonObject[],
  blocks: readonly JsonObject[],
): string {
  const { system, tools } = body
  return JSON.stringify([system ?? null, tools ?? null, messages, blocks], (key, value: unknown) =>
    key === 'cache_control' ? undefined : value,
  )
}

/** In a tool loop, the assistant message with the calls must start with thinking. */
function checkLoop(messages: readonly JsonObject[]): void {
  const last = arrayOf(messages.at(-1)?.content)
  const index = messages.findLastIndex(({ role }) => role === 'assistant')
  const [first] = arrayOf(messages[index]?.content).map(objectOf)
  if (!last.some((block) => isObject(block) && block.type === 'tool_result')) {
    return
  }
  if (first?.type !== 'thinking' && first?.type !== 'redacted_thinking') {
    const found = stringOf(first?.type) ?? ''
    refuse(
      `messages.${index}.content.0.type: Expected \`thinking\` or \`redacted_thinking\`, but found \`${found}\`. When \`thinking\` is enabled, a final \`assistant\` message must start with a thinking block.`,
    )
  }
}
