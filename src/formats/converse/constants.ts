/**
 * Constants and small rules of Bedrock's Converse that several files of this dialect share.
 *
 * Source: the service description that AWS generates its SDKs from, botocore 1.44.5
 * `data/bedrock-runtime/2023-09-30/service-2.json`, and recorded traffic.
 */
import { isObject, type JsonObject } from '../../base/json.js'
import type { ModelFacts } from '../chat/model-facts.js'
import { TOOL_NAMES } from '../vendors.js'
import { wireName } from '../wire/tool-names.js'

/** The provider name of opaque blocks. */
export const PROVIDER = 'converse'

/** The dialect of the reasoning state: of all models only Claude signs its reasoning. */
export const STATE_ORIGIN = 'anthropic'

/** Whether it is a model of Anthropic, by its facts or its id (`us.anthropic.claude-…`, an ARN with it). */
export function isClaude({ id, family }: Pick<ModelFacts, 'id' | 'family'>): boolean {
  return family === 'anthropic' || /\banthropic\.|\bclaude-/.test(id)
}

/** Whether it is one of Amazon's Nova models. */
export function isNova({ id }: Pick<ModelFacts, 'id'>): boolean {
  return /\bamazon\.nova-|^nova-/.test(id)
}

/** A call id in the alphabet and length of tool names, which the API requires of both. */
export function wireId(id: string): string {
  return wireName(id, TOOL_NAMES.converse)
}

/** The `reasoningContent` of a block; undefined if it is not a block of reasoning. */
export function reasoningOf(block: JsonObject | undefined): JsonObject | undefined {
  return isObject(block?.reasoningContent) ? block.reasoningContent : undefined
}
